// Answers of the internal server's own.
import type { ServerResponse } from 'node:http'
import { errorBody, type Refusal } from '../errors.ts'

export function answerInternal(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

export function refuseInternal(response: ServerResponse, refusal: Refusal): void {
  answerInternal(response, refusal.status, errorBody(refusal))
}
