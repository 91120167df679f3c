// Responses of the internal server itself.
import type { ServerResponse } from 'node:http'
import { errorBody, type Rejection } from '../errors.ts'

export function respondInternally(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

export function rejectInternal(response: ServerResponse, rejection: Rejection): void {
  respondInternally(response, rejection.status, errorBody(rejection))
}
