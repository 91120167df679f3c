// Reads request bodies into memory, within the process' budget. Nothing of a body is buffered that has no room, that is
// larger than its sender may send, or that arrives too slowly.
import type { FastifyRequest } from 'fastify'
import type { Readable } from 'node:stream'
import { BodyChunks, ByteTurns } from '@tenantry/contract'
import { noRoom, type Bounds } from '../bounds/index.ts'
import { RuntimeError } from '../errors.ts'
import { clientAddress } from './client-address.ts'
import { CollectedBytes } from './collected-bytes.ts'

/** The maximum body of an anonymous caller in bytes. */
export const maxAnonymousBytes = 1024 * 1024
/** The memory that a byte of a body needs: as received, as text, parsed, and as a parameter of a statement. */
export const memoryPerByte = 4

export interface BodyPace {
  /** Milliseconds between two checks of the rate. */
  interval: number
  /** The bytes that must arrive within an interval, unless the body is complete. */
  minBytes: number
  /** The maximum milliseconds of a whole body. */
  maxMilliseconds: number
}

export const defaultBodyPace: BodyPace = { interval: 10_000, minBytes: 8_192, maxMilliseconds: 300_000 }

interface ArrivingBody {
  begun: number
  readonly received: number
  /** The value of `received` at the last check; undefined before the first one. */
  checked: number | undefined
  fail(error: RuntimeError): void
}

/** A body in memory. */
interface ReadBody {
  bytes: Buffer
  /**
   * Reserves further bytes, for what is made from the body.
   * @throws RuntimeError TOO_MANY_BYTES, SERVICE_BUSY
   */
  charge: (bytes: number) => void
}

export class BodyReader {
  readonly #bounds: Bounds
  readonly #pace: BodyPace
  readonly #now: () => number
  readonly #arriving = new Set<ArrivingBody>()
  readonly #turns = new ByteTurns()
  readonly #checks: NodeJS.Timeout

  /** Creates a reader. `now` returns monotonic milliseconds. */
  constructor(bounds: Bounds, now: () => number, pace: BodyPace = defaultBodyPace) {
    this.#bounds = bounds
    this.#now = now
    this.#pace = pace
    this.#checks = setInterval(() => this.#endSlow(), pace.interval)
    this.#checks.unref()
  }

  /** Stops the checks of the rate. */
  close(): void {
    clearInterval(this.#checks)
  }

  /**
   * Reads a body. Its memory remains reserved until the response.
   * @throws RuntimeError BODY_TOO_LARGE, TOO_MANY_BYTES, SERVICE_BUSY, REQUEST_TIMEOUT, BAD_REQUEST
   */
  async read(request: FastifyRequest, payload: Readable): Promise<ReadBody> {
    const isAnonymous = isAnonymousCaller(request)
    const maxBytes = maxBytesOf(request, isAnonymous)
    const charge = this.#reserve(request)
    const declared = declaredBytes(request)
    if (declared !== undefined && declared > maxBytes) throw tooLarge(request, maxBytes, isAnonymous)
    // Anonymous callers reserve only what has arrived. Otherwise they could hold memory that they do not use.
    const isReserved = declared !== undefined && !isAnonymous
    if (isReserved) charge(declared * memoryPerByte)
    const turn = isInternal(request) ? '' : request.tenant.id
    const bytes = await this.#receive(payload, turn, (chunk, received) => {
      if (received > maxBytes) throw tooLarge(request, maxBytes, isAnonymous)
      if (!isReserved) charge(chunk.length * memoryPerByte)
    })
    return { bytes, charge }
  }

  /**
   * Reserves the memory of a form that its handler reads itself.
   * @param maxBytes the maximum size of the form
   * @throws RuntimeError TOO_MANY_BYTES, SERVICE_BUSY
   */
  reserveForm(request: FastifyRequest, maxBytes: number): void {
    this.#reserve(request)(Math.min(declaredBytes(request) ?? maxBytes, maxBytes) * memoryPerByte)
  }

  /** Opens the reservation of a request and returns the function that reserves bytes. */
  #reserve(request: FastifyRequest): ReadBody['charge'] {
    // Only services of the installation reach an internal route. Their small bodies belong to no tenant.
    if (isInternal(request)) return () => undefined
    const reservation = this.#bounds.openBody({
      tenantId: request.tenant.id,
      isAnonymous: isAnonymousCaller(request),
      address: clientAddress(request.headers),
    })
    request.bodyReservation = reservation
    return (bytes) => {
      const full = reservation.take(bytes)
      if (full === undefined) return
      // What never reached the tenant's data is free for the tenant.
      request.admitted = false
      throw noRoom('request bodies', full)
    }
  }

  /** @param turn the tenant in whose turn the body is read */
  #receive(payload: Readable, turn: string, onChunk: (chunk: Buffer, received: number) => void): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const collected = new CollectedBytes()
      const bodyChunks = new BodyChunks()
      let leaveTurn = () => {}
      const body: ArrivingBody = {
        begun: this.#now(),
        get received() {
          return collected.length
        },
        checked: undefined,
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      const data = (chunk: Buffer) => {
        try {
          onChunk(chunk, collected.length + chunk.length)
          collected.add(chunk)
          this.#turns.add(turn, bodyChunks.add(chunk.length))
          if (!this.#turns.isOver(turn)) return
          payload.pause()
          leaveTurn = this.#turns.wait(turn, () => payload.resume())
        } catch (error) {
          leave()
          reject(error instanceof Error ? error : new Error('The body could not be read.', { cause: error }))
        }
      }
      const end = () => {
        leave()
        resolve(collected.whole())
      }
      const broken = (cause?: Error) =>
        body.fail(new RuntimeError('BAD_REQUEST', 'The sender closed the connection.', { cause }))
      const leave = () => {
        this.#arriving.delete(body)
        leaveTurn()
        payload.off('data', data).off('end', end).off('error', broken).off('close', broken)
      }
      this.#arriving.add(body)
      payload.on('data', data).on('end', end).on('error', broken).on('close', broken)
      payload.resume()
    })
  }

  #endSlow(): void {
    const { minBytes, maxMilliseconds, interval } = this.#pace
    const now = this.#now()
    for (const body of this.#arriving) {
      const { checked, received, begun } = body
      body.checked = received
      if (now - begun > maxMilliseconds)
        body.fail(
          new RuntimeError(
            'REQUEST_TIMEOUT',
            `The body took longer than ${Math.round(maxMilliseconds / 1000)} seconds.`,
          ),
        )
      else if (checked !== undefined && received - checked < minBytes)
        body.fail(
          new RuntimeError(
            'REQUEST_TIMEOUT',
            `The body arrived too slowly: fewer than ${minBytes} bytes in ${interval / 1000} seconds.`,
          ),
        )
    }
  }
}

function isInternal({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.access === 'internal'
}

function isAnonymousCaller(request: FastifyRequest): boolean {
  return !isInternal(request) && request.rls.role === 'anon' && request.routeOptions.config.access !== 'signed'
}

function maxBytesOf({ routeOptions }: FastifyRequest, isAnonymous: boolean): number {
  const { bodyLimit } = routeOptions
  return isAnonymous ? Math.min(bodyLimit, maxAnonymousBytes) : bodyLimit
}

function declaredBytes({ headers }: FastifyRequest): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function tooLarge(request: FastifyRequest, maxBytes: number, isAnonymous: boolean): RuntimeError {
  if (isAnonymous && maxBytes < request.routeOptions.bodyLimit) {
    request.admitted = false
    return new RuntimeError(
      'BODY_TOO_LARGE',
      `The body is too large. Without a signed-in user or the secret key, at most ${maxBytes} bytes are allowed.`,
    )
  }
  return new RuntimeError('BODY_TOO_LARGE', 'The body is too large.')
}
