// Sign-outs and keys where several runtimes serve the tenant, as in a cluster.
import t from 'tap'
import { startSiblings, type SiblingRuntime } from '#test/realtime/support/sibling-runtimes.ts'
import { until } from '#test/support/until.ts'

const scene = await startSiblings(t, 2)
const [first, second] = scene.runtimes as [SiblingRuntime, SiblingRuntime]
const path = '/console/v1/session'

async function signIn(runtime: SiblingRuntime): Promise<Record<string, string>> {
  const response = await fetch(`${runtime.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service_key: runtime.secretKey }),
  })
  const { csrf_token: token } = (await response.json()) as { csrf_token: string }
  return { cookie: response.headers.getSetCookie()[0]?.split(';')[0] ?? '', 'x-csrf-token': token }
}

const use = async (runtime: SiblingRuntime, headers: Record<string, string>) =>
  (await fetch(`${runtime.url}/rest/v1/schemas`, { headers })).status
const signOut = async (runtime: SiblingRuntime, headers: Record<string, string>) =>
  (await fetch(`${runtime.url}${path}`, { method: 'DELETE', headers })).status
const untilEnded = (runtime: SiblingRuntime, session: Record<string, string>) =>
  until(async () => (await use(runtime, session)) === 401, 'the session has ended')

t.test('A sign-out at one runtime ends the session at the other one; other sessions continue', async (t) => {
  const [session, other] = [await signIn(first), await signIn(second)]
  for (const runtime of [first, second])
    for (const one of [session, other]) t.same(await use(runtime, one), 200, 'each runtime accepts each session')
  t.same(await signOut(first, session), 204)
  t.same(await use(first, session), 401)
  await untilEnded(second, session)
  for (const runtime of [first, second]) t.same(await use(runtime, other), 200)
})

t.test('A runtime that was replaced meanwhile receives the sign-outs with its link', async (t) => {
  const [session, other] = [await signIn(first), await signIn(first)]
  await second.end('SIGKILL')
  t.same(await signOut(first, session), 204)
  await second.start()
  await untilEnded(second, session)
  t.same(await use(second, other), 200)
})

t.test('No runtime reports the last uses of keys, because none sees all of them', async (t) => {
  const response = await fetch(`${first.url}/keys/v1`, { headers: { apikey: first.secretKey } })
  t.match(await response.json(), {
    keys: [
      { name: 'secret_key', last_used_at: null },
      { name: 'publishable_key', last_used_at: null },
    ],
    uses_known_since: null,
  })
})
