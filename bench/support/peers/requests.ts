// The requests of the benchmark of peers to each service, and the check of what the services respond.
import { deepStrictEqual } from 'node:assert/strict'
import { wire } from '../load.ts'
import { sendJson } from '../send-json.ts'
import type { Location } from '../transfer.ts'
import {
  checkRows,
  getOne,
  operations,
  rowsOf,
  type OperationName,
  type OwnRow,
  type RestService,
} from './rest-operations.ts'
import { event, greeting, type PeersScene, type Service } from './scene.ts'

/** Requests whose responses are compared in each check. */
const checkedRequests = 20

/** One way to do the same work: requests to a service. */
export interface Way {
  service: Service
  /** Makes the next request, as bytes for the wire. */
  request: () => Buffer
  /** The status of the responses. */
  status: number
}

/** Returns requests of random users, each for one of the user's rows. */
export function restWay({ rest, users }: PeersScene, name: RestService, operationName: OperationName): Way {
  const [service, operation] = [rest[name], operations[operationName]]
  const request = () => {
    const row = someRow(users)
    const { method, path, body } = operation[name](row, operation.values?.())
    return bytes(method, service.at(row.user, path), body)
  }
  return { service, request, status: operation.status[name] }
}

/** Returns invocations of the function. */
export function functionWay({ functions, caller }: PeersScene, name: keyof PeersScene['functions']): Way {
  const service = functions[name]
  const request = bytes('POST', service.at(caller, '/'), event)
  return { service, request: () => request, status: 200 }
}

/**
 * Sends the same requests to both services, and checks that both respond with the same rows, which are those of the
 * request; and that they have stored what a request writes.
 */
export async function checkRest({ rest, users }: PeersScene, name: OperationName): Promise<void> {
  const operation = operations[name]
  for (let n = 0; n < checkedRequests; n++) {
    const row = someRow(users)
    const values = operation.values?.()
    const responses: unknown[] = []
    for (const service of ['tenantry', 'platformaticDb'] as const) {
      const { method, path, body } = operation[service](row, values)
      const response = await sendJson(rest[service].at(row.user, path), method, operation.status[service], body)
      responses.push(response)
      if (values === undefined) continue
      const [written] = rowsOf(response)
      const stored = getOne({ id: String(written?.['id']) })
      deepStrictEqual(rowsOf(await sendJson(rest[service].at(row.user, stored.path), 'GET', 200)), [written])
    }
    checkRows(operation, operation.expected(row, values), responses[0], responses[1])
  }
}

/** Checks that all services respond with the command's output. */
export async function checkFunctions({ functions, caller }: PeersScene): Promise<void> {
  for (const service of Object.values(functions)) {
    const output = await sendJson(service.at(caller, '/'), 'POST', 200, JSON.parse(event) as object)
    deepStrictEqual(output, JSON.parse(greeting))
  }
}

function someRow(users: PeersScene['users']): OwnRow {
  const user = users[Math.floor(Math.random() * users.length)]
  if (user === undefined) throw new Error('The scene has no users')
  return { user, id: user.rows[Math.floor(Math.random() * user.rows.length)] ?? '' }
}

function bytes(method: string, { path, headers }: Location, body: object | string | undefined): Buffer {
  if (body === undefined) return wire(method, path, headers)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const content = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  return Buffer.concat([wire(method, path, { ...headers, ...content }), Buffer.from(text)])
}
