// The file of the internal token is read again after a change, and what it contains is checked.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { TokenFile, isInternalToken, tenantOfToken, tenantToken } from '@tenantry/contract'
import { until } from '#test/support/until.ts'

const [old, next] = ['an-internal-token-of-the-past', 'an-internal-token-of-the-future']
const tenantId = 't_0123456789abcdef0123'

t.test('A replaced file has effect without a restart', async (t) => {
  const path = join(t.testdir({ token: `${old}\n` }), 'token')
  const token = new TokenFile(path, 20)
  const errors: Error[] = []
  token.follow((error) => errors.push(error))
  t.same([token.sent, token.accepted], [old, [old]])

  await writeFile(`${path}.next`, `${next}\n\n ${old} \n`)
  await rename(`${path}.next`, path)
  await until(() => Promise.resolve(token.sent === next), 'the new token is sent')
  t.same(token.accepted, [next, old])
  for (const text of [old, next]) {
    t.ok(isInternalToken(token, text))
    t.equal(tenantOfToken(token, tenantToken(text, tenantId)), tenantId)
  }

  await writeFile(path, next)
  await until(() => Promise.resolve(token.accepted.length === 1), 'the old token is gone')
  t.notOk(isInternalToken(token, old))
  t.equal(tenantOfToken(token, tenantToken(old, tenantId)), undefined)
  for (const other of [undefined, [next], '', `${next} `, 'é'.repeat(next.length)])
    t.notOk(isInternalToken(token, other), JSON.stringify(other))

  for (const text of ['', `${next}\nshort`]) {
    await writeFile(path, text)
    await until(() => Promise.resolve(errors.length > 0), 'an error is reported')
    t.match(errors.splice(0), [
      { message: /cannot be used/, cause: { message: /at least 20 characters in each line/ } },
    ])
    t.same(token.accepted, [next], 'the former content stays valid')
  }
  await writeFile(path, `${old}\n`)
  await until(() => Promise.resolve(token.sent === old), 'a later file is read')
})

t.test('A start with an unusable file is rejected', async (t) => {
  const directory = t.testdir({ token: 'short' })
  t.throws(() => new TokenFile(join(directory, 'token'), 20), { message: /at least 20 characters/ })
  t.throws(() => new TokenFile(join(directory, 'absent'), 20), { message: /cannot be read/ })
})
