// `npm run demo` on a platform on three hosts: a tenant of each isolation model is created, used with the unmodified client, and deleted.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startSwarmPlatform } from '#test/support/swarm-platform.ts'

const models = ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant']

t.test('The demo passes for each isolation model', { timeout: 900_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  for (const isolation of models) {
    const options = ['--control-url', platform.controlUrl, '--key-file', '-', '--plan', 'Pro', '--isolation', isolation]
    const demo = spawn(process.execPath, ['examples/demo.ts', ...options], { stdio: ['pipe', 'pipe', 'pipe'] })
    demo.stdin.end(platform.platformKey)
    const [output, errors, code] = await Promise.all([
      text(demo.stdout),
      text(demo.stderr),
      new Promise<number | null>((resolve) => demo.on('close', resolve)),
    ])
    t.equal(code, 0, `${isolation}\n${output}${errors}`)
    t.match(output, /create the tenant demo-/)
    t.comment(output)
  }
})
