// Verifies signatures of webhook messages: an HMAC-SHA256 over `id.timestamp.body` with a recent timestamp. Pure.
//
//   Standard Webhooks   webhook-id, webhook-timestamp, webhook-signature: v1,<base64> (several, separated by spaces)
//   Tenantry            tenantry-id, tenantry-timestamp, tenantry-signature: v1=<hex>
//
// The names do not begin with `x-tenantry-`, because the gateway removes such headers of clients.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { RuntimeError } from '../../errors.ts'

interface WebhookHead {
  id: string
  /** The timestamp as it was sent. */
  timestamp: string
  /** The decoded signatures of version 1. */
  signatures: Buffer[]
}

/** Maximum difference of the sender's clock, in either direction. */
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
 * Reads and checks the headers of a message, before its body is read.
 * @param now milliseconds since 1970
 * @throws RuntimeError INVALID_WEBHOOK with the header that is missing or invalid
 */
export function readWebhookHead(headers: IncomingHttpHeaders, now: number): WebhookHead {
  const form = forms.find(({ names }) => names.some((name) => headers[name] !== undefined))
  if (form === undefined)
    throw rejected(
      `The message is not signed. Send the headers ${listed(forms[0].names)}, or ${listed(forms[1].names)}.`,
    )
  const [id, timestamp, signature] = form.names.map((name) => {
    const value = headers[name]
    if (typeof value !== 'string' || value === '') throw rejected(`Header "${name}" is missing.`)
    return value
  })
  const [idName, timestampName, signatureName] = form.names
  if (id === undefined || !/^[\x21-\x7e]+$/.test(id) || id.length > maxIdLength)
    throw rejected(`Header "${idName}" must have 1 to ${maxIdLength} visible ASCII characters.`)
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp))
    throw rejected(`Header "${timestampName}" must be a time in seconds since 1970.`)
  const seconds = Math.round(now / 1_000)
  if (Math.abs(Number(timestamp) - seconds) > toleranceSeconds) {
    throw rejected(
      `Header "${timestampName}" is ${timestamp}, which differs by more than ${toleranceSeconds} s from the time ${seconds}.`,
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
  if (signatures.length === 0) throw rejected(`Header "${signatureName}" has no signature of version 1.`)
  return { id, timestamp, signatures }
}

/** Verifies the signatures. @throws RuntimeError INVALID_WEBHOOK if none of them is valid */
export function checkSignature({ id, timestamp, signatures }: WebhookHead, body: Uint8Array, secret: string): void {
  const expected = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest()
  // All are compared, so that the duration does not reveal which one is valid.
  const results = signatures.map(
    (signature) => signature.length === expected.length && timingSafeEqual(signature, expected),
  )
  if (!results.includes(true))
    throw rejected(
      'No signature is valid. Sign "id.timestamp.body" with HMAC-SHA256 and the function\'s secret, with the body as it is sent.',
    )
}

/** Returns the key: the decoded base64 after the prefix, or the bytes of a secret without the prefix. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.from(secret, 'utf8')
}

/** Returns all forms of the secret, which must not be shown. */
export function secretForms(secret: string): string[] {
  return secret.startsWith(prefix) ? [secret, secret.slice(prefix.length)] : [secret]
}

/** Validates a secret. @returns the error as a sentence; undefined if the secret is valid */
export function secretError(secret: string): string | undefined {
  if (!secret.startsWith(prefix)) return undefined
  const text = secret.slice(prefix.length)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || Buffer.from(text, 'base64').length === 0)
    return `A secret that begins with "${prefix}" must continue in base64.`
  return undefined
}

function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`
}

function rejected(message: string): RuntimeError {
  return new RuntimeError('INVALID_WEBHOOK', message)
}
