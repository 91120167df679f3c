// An operator's service that receives webhooks. It checks their signatures, and a test can make it send no responses.
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { listen } from './listen.ts'

export interface Message {
  /** The message's ID, which all attempts share. */
  id: string
  /** The time of this attempt. */
  at: Date
  type: string
  data: Record<string, unknown>
  /** Whether the signature is that of the secret. */
  isSigned: boolean
}

export interface WebhookReceiver {
  url: string
  secret: string
  /** All messages in the order of their arrival, repeated ones too. */
  messages: Message[]
  /** True makes the receiver send no responses. */
  isSilent: boolean
}

export async function startWebhookReceiver(t: Test): Promise<WebhookReceiver> {
  const receiver: WebhookReceiver = { url: '', secret: '', messages: [], isSilent: false }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      receiver.messages.push(readMessage(request, Buffer.concat(chunks).toString(), receiver.secret))
      if (!receiver.isSilent) response.writeHead(204).end()
    })
  })
  receiver.url = `http://127.0.0.1:${await listen(t, server)}/hooks`
  return receiver
}

function readMessage({ headers }: IncomingMessage, body: string, secret: string): Message {
  const header = (name: string) => String(headers[name])
  const [id, timestamp] = [header('webhook-id'), header('webhook-timestamp')]
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const { type, data } = JSON.parse(body) as Pick<Message, 'type' | 'data'>
  return {
    id,
    at: new Date(Number(timestamp) * 1000),
    type,
    data,
    isSigned: header('webhook-signature').split(' ').includes(`v1,${wanted}`),
  }
}
