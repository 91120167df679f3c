// A tenant's token is valid for that tenant and that installation, and for nothing else.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { tenantOfToken, tenantToken } from '@tenantry/contract'

const internalToken = 'the-internal-token-of-an-installation'
const tenantId = 't_0123456789abcdef0123'
const good = tenantToken(internalToken, tenantId)

t.test('A token contains its tenant, but not the token that it is derived from', async (t) => {
  t.match(good, /^t_0123456789abcdef0123\.[A-Za-z0-9_-]{43}$/)
  t.equal(tenantOfToken(internalToken, good), tenantId)
  t.equal(tenantToken(internalToken, tenantId), good, 'the same each time')
  t.notMatch(good, internalToken)
})

t.test('A token with any changed character is invalid', async (t) => {
  for (let at = 0; at < good.length; at++) {
    const other = good[at] === '0' ? '1' : '0'
    t.equal(tenantOfToken(internalToken, `${good.slice(0, at)}${other}${good.slice(at + 1)}`), undefined, `at ${at}`)
  }
})

t.test('A token of another tenant, another installation or another form is invalid', async (t) => {
  const other = 't_ffffffffffffffffffff'
  const proof = good.slice(good.indexOf('.') + 1)
  const texts = [
    `${other}.${proof}`,
    tenantToken('another-internal-token-of-another', tenantId),
    internalToken,
    tenantId,
    proof,
    '',
    '.',
    `.${proof}`,
    `${tenantId}.`,
    `${good}=`,
    `${good}.`,
    ` ${good}`,
    good.toUpperCase(),
    `${good}\0`,
    `${tenantId}.${Buffer.from(proof, 'base64url').toString('hex')}`,
    `x${good}`,
    'é'.repeat(good.length),
  ]
  for (const text of texts) t.equal(tenantOfToken(internalToken, text), undefined, JSON.stringify(text))
  for (let n = 0; n < 200; n++) {
    t.equal(tenantOfToken(internalToken, `${tenantId}.${randomBytes(32).toString('base64url')}`), undefined)
  }
})
