// Which routers reach the primary: only one that reports it is relied on when the other is replaced.
import t from 'tap'
import { readyRouters } from '#control-plane/clusters/ready-routers.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'

const { signal } = new AbortController()
const id = 't_0123456789abcdef0123'

t.test('A router is ready when its check succeeds', async (t) => {
  const calls: string[] = []
  const exec = async (stack: string, service: string, command: readonly string[]) => {
    calls.push(`${stack} ${service} ${command.join(' ')}`)
    if (service === 'router-1') throw new EngineError('NOT_FOUND', 'No container of router-1 is running.')
    return { code: 0, stdout: '', stderr: '' }
  }
  t.same([...(await readyRouters({ exec }, id, signal))], ['router-2'])
  t.same(
    calls,
    [1, 2].map((router) => `${id} router-${router} /usr/local/bin/is-ok 8009 /ready`),
  )
  const failing = async () => ({ code: 1, stdout: '', stderr: 'no primary' })
  t.same([...(await readyRouters({ exec: failing }, id, signal))], [])
})

t.test('An engine that cannot be reached is an error, not a router that is not ready', async (t) => {
  const exec = () => Promise.reject(new EngineError('ENGINE_UNREACHABLE', 'The engine does not respond.'))
  await t.rejects(readyRouters({ exec }, id, signal), { code: 'ENGINE_UNREACHABLE' })
})
