// The REST requests that the benchmark compares, as Tenantry and Platformatic DB take them, and the check that the
// responses contain the same rows, which are those of the request.
import { deepStrictEqual, strictEqual } from 'node:assert/strict'
import type { User } from '../rest-scene.ts'

export interface RestRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT'
  path: string
  body?: object | undefined
}

/** A user and one of their rows. */
export interface OwnRow {
  user: User
  id: string
}

/** Columns that a write sets. */
type Values = Record<'title' | 'done' | 'rank', unknown>

export interface Operation {
  /** Number of rows in the response. */
  rows: number
  /** The status of the responses. */
  status: Record<RestService, number>
  /** Whether the row is new, so that each service gives it another ID. */
  isNew?: boolean
  /** Returns new values of a row; undefined for reads. */
  values?: () => Values
  tenantry(row: OwnRow, values: Values | undefined): RestRequest
  platformaticDb(row: OwnRow, values: Values | undefined): RestRequest
  /** Returns what every row of the response must contain. */
  expected(row: OwnRow, values: Values | undefined): Row
}

export type RestService = 'tenantry' | 'platformaticDb'
export type Row = Record<string, unknown>
/** Inserts come last, because their rows make lists longer. */
export const operationNames = ['get', 'list', 'update', 'insert'] as const
export type OperationName = (typeof operationNames)[number]

const listed = 100
const ok = { tenantry: 200, platformaticDb: 200 }
let count = 0

const random = (below: number) => Math.floor(Math.random() * below)
const values = (): Values => ({ title: `new title ${count++}`, done: random(2) === 0, rank: random(10_000) })
export const getOne = ({ id }: Pick<OwnRow, 'id'>): RestRequest => ({ method: 'GET', path: `/todos/${id}` })

export const operations: Record<OperationName, Operation> = {
  get: {
    rows: 1,
    status: ok,
    tenantry: getOne,
    platformaticDb: getOne,
    expected: ({ user, id }) => ({ id, owner_id: user.id }),
  },
  list: {
    rows: listed,
    status: ok,
    // The policy restricts it to the user's rows.
    tenantry: () => ({ method: 'GET', path: `/todos?order=rank.desc&limit=${listed}` }),
    platformaticDb: ({ user }) => ({
      method: 'GET',
      path: `/todos?orderby.rank=desc&limit=${listed}&where.ownerId.eq=${user.id}`,
    }),
    expected: ({ user }) => ({ owner_id: user.id }),
  },
  update: {
    rows: 1,
    status: ok,
    values,
    tenantry: ({ id }, body) => ({ method: 'PATCH', path: `/todos/${id}`, body }),
    platformaticDb: ({ id }, body) => ({ method: 'PUT', path: `/todos/${id}`, body }),
    expected: ({ user, id }, written) => ({ id, owner_id: user.id, ...written }),
  },
  insert: {
    rows: 1,
    status: { ...ok, tenantry: 201 },
    isNew: true,
    values,
    // The policy makes the user the owner.
    tenantry: (_row, body) => ({ method: 'POST', path: '/todos', body }),
    platformaticDb: ({ user }, body) => ({ method: 'POST', path: '/todos', body: { ownerId: user.id, ...body } }),
    expected: ({ user }, written) => ({ owner_id: user.id, ...written }),
  },
}

/** Returns the rows of a response with the names and values that both services have. */
export function rowsOf(response: unknown): Row[] {
  const rows = Array.isArray(response) ? (response as Row[]) : [response as Row]
  return rows.map((row) => {
    const columns = Object.entries(row).map(([name, value]) => [
      name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
      value,
    ])
    const { created_at: at, ...others } = Object.fromEntries(columns) as Row
    return { ...others, created_at: typeof at === 'string' ? new Date(at).toISOString() : at }
  })
}

/**
 * Checks that two responses contain the same rows, which are those of the request.
 * @throws AssertionError
 */
export function checkRows({ rows, isNew }: Operation, expected: Row, ours: unknown, theirs: unknown): void {
  const own = rowsOf(ours)
  strictEqual(own.length, rows)
  for (const row of own) deepStrictEqual({ ...row, ...expected }, row)
  const comparable = (row: Row) => (isNew === true ? { ...row, id: undefined } : row)
  deepStrictEqual(rowsOf(theirs).map(comparable), own.map(comparable))
}
