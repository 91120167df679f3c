// Whether a webhook's message comes from whoever knows the secret, and now: HMAC-SHA256 over `id.timestamp.body`. Pure.
//
//   the common form   webhook-id, webhook-timestamp, webhook-signature: v1,<base64> (several, separated by spaces)
//   ours              tenantry-id, tenantry-timestamp, tenantry-signature: v1=<hex>
//
// Headers that begin with `x-tenantry-` are the installation's own, and no client's gets past the gateway.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { RuntimeError } from '../../errors.ts'

interface WebhookHead {
  id: string
  /** As it was sent. */
  timestamp: string
  /** Decoded; those of versions that are not known here are left out. */
  signatures: Buffer[]
}

/** Seconds by which the sender's clock may differ, in either direction. */
const toleranceSeconds = 300
const maxIdLength = 256
const maxSignatures = 20
const prefix = 'whsec_'

const forms = [
  {
    names: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    signature: /^v1,([A-Za-z0-9+/]{43}=)$/,
    encoding: 'base64',
  },
  {
    names: ['tenantry-id', 'tenantry-timestamp', 'tenantry-signature'],
    signature: /^v1=([0-9a-fA-F]{64})$/,
    encoding: 'hex',
  },
] as const

/**
 * What can be said of a message before its body is read.
 * @param now milliseconds since 1970
 * @throws RuntimeError INVALID_WEBHOOK that says which header is missing or wrong
 */
export function readWebhookHead(headers: IncomingHttpHeaders, now: number): WebhookHead {
  const form = forms.find(({ names }) => names.some((name) => headers[name] !== undefined))
  if (form === undefined)
    throw rejected(`the message is not signed: send ${listed(forms[0].names)}, or ${listed(forms[1].names)}`)
  const [id, timestamp, signature] = form.names.map((name) => {
    const value = headers[name]
    if (typeof value !== 'string' || value === '') throw rejected(`the header "${name}" is missing`)
    return value
  })
  const [idName, timestampName, signatureName] = form.names
  if (id === undefined || !/^[\x21-\x7e]+$/.test(id) || id.length > maxIdLength)
    throw rejected(`the header "${idName}" must have 1 to ${maxIdLength} visible ASCII characters`)
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp))
    throw rejected(`the header "${timestampName}" must be a time in seconds since 1970`)
  const seconds = Math.round(now / 1_000)
  if (Math.abs(Number(timestamp) - seconds) > toleranceSeconds) {
    throw rejected(
      `the header "${timestampName}" is ${timestamp}, but here it is ${seconds}: more than ${toleranceSeconds} s apart`,
    )
  }
  const parts = (signature ?? '')
    .split(' ')
    .filter((part) => part !== '')
    .slice(0, maxSignatures)
  const signatures = parts.flatMap((part) => {
    const text = form.signature.exec(part)?.[1]
    return text === undefined ? [] : [Buffer.from(text, form.encoding)]
  })
  if (signatures.length === 0) throw rejected(`the header "${signatureName}" holds no signature of version 1`)
  return { id, timestamp, signatures }
}

/** @throws RuntimeError INVALID_WEBHOOK when none of the signatures fits */
export function checkSignature({ id, timestamp, signatures }: WebhookHead, body: Uint8Array, secret: string): void {
  const expected = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest()
  // Each is compared, so that the time does not tell which one fits.
  const fits = signatures.map(
    (signature) => signature.length === expected.length && timingSafeEqual(signature, expected),
  )
  if (!fits.includes(true))
    throw rejected(
      'no signature fits: they are made with HMAC-SHA256 and the function\'s secret over "id.timestamp.body", with the body as it is sent',
    )
}

/** With the prefix, what follows is the key in base64; without, the secret's bytes are. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.from(secret, 'utf8')
}

/** What must not show anywhere: the secret, however it is written. */
export function secretForms(secret: string): string[] {
  return secret.startsWith(prefix) ? [secret, secret.slice(prefix.length)] : [secret]
}

/** @returns what is wrong with a secret */
export function objectionToSecret(secret: string): string | undefined {
  if (!secret.startsWith(prefix)) return undefined
  const text = secret.slice(prefix.length)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || Buffer.from(text, 'base64').length === 0)
    return `a secret that begins with "${prefix}" goes on in base64`
  return undefined
}

function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`
}

function rejected(what: string): RuntimeError {
  return new RuntimeError('INVALID_WEBHOOK', what)
}
