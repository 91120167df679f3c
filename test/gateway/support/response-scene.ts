// A forwarded response without sockets. Its client, runtime, quota and counters record what is done to them.
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { ByteTurns } from '@tenantry/contract'
import { BodyBudget } from '#gateway/forward/body-budget.ts'
import { ForwardedResponse } from '#gateway/forward/forwarded-response.ts'
import { LiveConnections } from '#gateway/forward/live-connections.ts'
import { PassedBytes } from '#gateway/forward/passed-bytes.ts'
import { RequestAccount } from '#gateway/forward/request-account.ts'
import { RequestBody } from '#gateway/forward/request-body.ts'
import { rejections, type Rejection } from '#gateway/errors.ts'

type Gate = ConstructorParameters<typeof ForwardedResponse>[0]['gate']
type Client = ConstructorParameters<typeof ForwardedResponse>[0]['client']
type QueueEntry = ReturnType<Parameters<Gate['open']>[0]>

/** The differences from the default scene: a GET whose client reads all, and whose tenant has free slots. */
export interface Conditions {
  isHead?: boolean
  hasWholeRequest?: boolean
  /** The connection ends with this response. */
  isLast?: boolean
  /** The client reads no more for now. */
  isFull?: boolean
  /** The runtime's head cannot be written. */
  isHeadUnwritable?: boolean
  slots?: 'free' | 'awaited' | 'used up'
}

export const noSlots: Rejection = { ...rejections.gatewayBusy, code: 'QUOTA_CONNECTIONS', isQuota: true }

export interface Scene {
  response: ForwardedResponse
  live: LiveConnections
  /** All actions, in order. */
  done: string[]
  /** Returns the actions since the last call. */
  changes(): string[]
  /** Decides on the slot that an event stream waits for. */
  slot: QueueEntry
  /** The client stops sending its body. */
  stopSending(): void
  /** The wait of the response before a runtime is called. */
  wait: { abort(reason: Error): void }
  call: { abort(reason: Error): void }
  source: { pause(): void; resume(): void; abort(reason: Error): void }
}

export function startScene(conditions: Conditions = {}): Scene {
  const { slots = 'free' } = conditions
  const done: string[] = []
  const note = (what: string) => done.push(what)
  const live = new LiveConnections(() => true)
  const passed = new PassedBytes(() => undefined)
  const budget = new BodyBudget(1_000_000)
  const turns = new ByteTurns()
  let entry: QueueEntry | undefined
  let onIdle: () => void = () => undefined
  let isClosed = false
  const isLast = () => isClosed || conditions.isLast === true
  const client: Client = {
    isHead: conditions.isHead === true,
    hasWholeRequest: conditions.hasWholeRequest === true,
    get isLast() {
      return isLast()
    },
    openBody: (given) => {
      note('body opened')
      onIdle = given
      return new RequestBody(new IncomingMessage(new Socket()), {
        idleTimeout: 1_000,
        minRate: 1_000,
        maxLag: 1_000,
        elapsed: () => 0,
        passed,
        turns,
        tenantId: 't_0',
        budget,
        share: budget.open('t_0', { bodyBytes: 0 }),
        onIdle,
        onRejected: () => onIdle(),
      })
    },
    readPromptBody: (onRead) => {
      note('body read')
      onRead(undefined)
    },
    awaitContinue: () => note('continue awaited'),
    sendContinue: () => note('continue sent'),
    neverReuse: () => {
      isClosed = true
    },
    inform: (status) => note(`interim ${status}`),
    writeHead: (status, headers) => {
      if (conditions.isHeadUnwritable === true) return false
      note(`head ${status}${headers.includes('close') ? ' close' : ''}`)
      return true
    },
    flushHead: () => note('head flushed'),
    writeRejectionHead: ({ code }) => {
      note(`rejection ${code}${isLast() ? ' close' : ''}`)
      return Buffer.from(code)
    },
    write: (chunk) => {
      note(`write ${chunk.toString()}`)
      return conditions.isFull !== true
    },
    awaitReader: () => note('reader awaited'),
    release: () => note('released'),
    end: (last, hasLength) => note(`end ${last?.toString() ?? '-'}${hasLength ? '' : ' without length'}`),
    destroy: () => note('cut'),
    detach: () => note('detached'),
  }
  const gate: Gate = {
    open: (make) => {
      if (slots === 'used up') return noSlots
      if (slots === 'free') {
        note('slot taken')
        return undefined
      }
      const made = make()
      note('slot awaited')
      entry = {
        go: () => {
          note('slot taken')
          made.go()
        },
        reject: (rejection) => made.reject(rejection),
      }
      return () => note('slot left')
    },
    closed: () => note('slot released'),
    addHeaders: () => undefined,
  }
  const account = new RequestAccount(
    {
      began: () => note('began'),
      ended: () => note('ended'),
      inProgress: 0,
      request: (_group, _method, status, milliseconds) => note(`counted ${status} after ${milliseconds}`),
      rejected: (_group, _method, status) => note(`rejected ${status}`),
      quotaRejected: () => note('rejected by quota'),
      egress: (_group, bytes) => note(`egress ${bytes}`),
      opened: () => note('stream opened'),
      closed: () => note('stream closed'),
      whenWritten: (next) => next(),
    },
    'rest',
    'GET',
    () => 0,
    { served: () => undefined, rejected: () => undefined },
  )
  const response = new ForwardedResponse({
    client,
    account,
    gate,
    live,
    passed,
    turns,
    tenantId: 't',
    requestId: 'id',
    onOver: () => note('over'),
  })
  let shown = done.length
  const abortable = (what: string) => ({ abort: ({ message }: Error) => note(`${what} aborted: ${message}`) })
  return {
    response,
    live,
    done,
    changes() {
      const since = done.slice(shown)
      shown = done.length
      return since
    },
    slot: {
      go: () => entry?.go(),
      reject: (rejection) => entry?.reject(rejection),
    },
    stopSending: () => onIdle(),
    wait: abortable('wait'),
    call: abortable('call'),
    source: { ...abortable('runtime'), pause: () => note('paused'), resume: () => note('resumed') },
  }
}
