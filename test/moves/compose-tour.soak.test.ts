// The tour of docs/operate/moves.md with Docker Compose: a tenant grows from Free over Pro to Enterprise, while a client adds notes.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startComposePlatform } from '#test/support/compose-platform.ts'
import { until } from '#test/support/docker.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
const page = new URL('../../docs/operate/moves.md', import.meta.url)
const startSeconds = 120

interface Region {
  docker: Record<string, unknown>
}

t.test('The tour of the moves from Free over Pro to Enterprise', { timeout: 1_800_000 }, async (t) => {
  const platform = await startComposePlatform(t)
  await enableClusters(platform)
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-tour-'))
  t.teardown(() => rm(directory, { recursive: true }))
  await symlink(join(project, 'node_modules'), join(directory, 'node_modules'))
  const tour = (await tourOf(page))
    .replaceAll('--region local', `--region ${platform.region}`)
    .replaceAll('/tmp/root.crt', platform.certificateFile)
  const { stdout, stderr } = await run('bash', ['-c', tour], {
    cwd: directory,
    env: { ...process.env, CONTROL: platform.controlUrl, KEY: platform.key, XDG_CONFIG_HOME: directory },
  })
  t.comment(stderr + stdout)
  const sent = (await readFile(join(directory, 'responses.txt'), 'utf8')).trim().split('\n')
  t.same(
    sent.filter((status) => status !== '201'),
    [],
    `all of ${sent.length} notes were added`,
  )
  const stored = Number(/content-range: \*\/(\d+)/.exec(stdout)?.[1])
  t.ok(stored === sent.length || stored === sent.length + 1, 'each once, and maybe one whose response was not awaited')
  t.match(stdout, /isolation +database-per-tenant[^]*isolation +cluster-per-tenant/)
})

/** Returns the commands of the tour. */
async function tourOf(file: URL): Promise<string> {
  const tour = /## A tour with Docker Compose\n[^]*?```sh\n([^]*?)```/.exec(await readFile(file, 'utf8'))?.[1]
  if (tour === undefined) throw new Error('The page has no such tour.')
  return tour
}

/** Adds clusters to the region, as docs/operate/clusters.md describes. */
async function enableClusters(platform: Awaited<ReturnType<typeof startComposePlatform>>): Promise<void> {
  const file = join(dirname(platform.settings), 'regions.json')
  const regions = JSON.parse(await readFile(file, 'utf8')) as Region[]
  for (const region of regions)
    region.docker['clusters'] = { member_image: 'tenantry/cluster-member:latest', etcd_image: 'tenantry/etcd:latest' }
  await writeFile(file, JSON.stringify(regions))
  await platform.setUp()
  await (await platform.container('control-plane')).restart()
  const listsClusters = async () => {
    const headers = { authorization: `Bearer ${platform.key}` }
    const response = await fetch(`${platform.controlUrl}/v1/regions`, { headers }).catch(() => undefined)
    return (await response?.text())?.includes('cluster-per-tenant') === true ? true : undefined
  }
  await until(listsClusters, startSeconds)
}
