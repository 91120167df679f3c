// An HTTP client of a cluster's tenant, which reads and uploads through every failover.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'

/** Sends a request to the tenant. */
type Call = (method: string, path: string, body?: string) => Promise<Response>

const bucket = '/storage/v1/bucket'
const objectPath = (number: number) => `/storage/v1/object/failovers/${number}`

/** The maximum time between two successful reads. */
export interface ReadPause {
  milliseconds: number
  /** The requests in it: each with the time at which it ended, how long it took, and its response. */
  course: string[]
}

/** The maximum number of requests of a course, the last ones. */
const maxCourse = 20

/** Reads the list of buckets and uploads numbered objects, one after the other, until it is stopped. @param waitMs after each request */
export async function startHttpClient(t: Pick<Test, 'teardown'>, call: Call, waitMs = 50) {
  const created = await call('POST', bucket, JSON.stringify({ name: 'failovers', policy: 'private' }))
  if (created.status !== 201) throw new Error(`The bucket was not created: ${created.status} ${await created.text()}`)
  const counts = { reads: 0, retryableReads: 0, uploads: 0, retryableUploads: 0 }
  /** Responses that a client of a cluster must not receive. */
  const wrong: string[] = []
  const acknowledged: number[] = []
  /** Responses of success, and requests whose response never arrived or was another one. */
  const requests = { succeeded: 1, others: 0 }
  let isStopped = false
  let maxMilliseconds = 0
  let lastRead = performance.now()
  let maxReadPause: ReadPause = { milliseconds: 0, course: [] }
  let course: string[] = []

  const send = async (method: string, path: string, body?: string) => {
    const begun = performance.now()
    const response = await call(method, path, body).catch((error: unknown) => String(error))
    const milliseconds = Math.round(performance.now() - begun)
    maxMilliseconds = Math.max(maxMilliseconds, milliseconds)
    if (typeof response !== 'string' && response.ok) requests.succeeded++
    else requests.others++
    if (typeof response === 'string') return { status: 0, text: response, retryAfter: null, milliseconds }
    const retryAfter = response.headers.get('retry-after')
    return { status: response.status, text: await response.text(), retryAfter, milliseconds }
  }
  const read = async () => {
    const { status, text, retryAfter, milliseconds: taken } = await send('GET', bucket)
    const now = performance.now()
    course = [
      ...course,
      `after ${Math.round(now - lastRead)} ms ${status} in ${taken} ms ${status === 200 ? '' : text}`,
    ].slice(-maxCourse)
    counts.reads++
    if (status === 503 && retryAfter !== null) counts.retryableReads++
    else if (status !== 200) wrong.push(`GET: ${status} ${text}`)
    if (status !== 200) return
    const milliseconds = Math.round(now - lastRead)
    if (milliseconds > maxReadPause.milliseconds) maxReadPause = { milliseconds, course }
    lastRead = now
    course = []
  }
  const upload = async (number: number) => {
    const { status, text, retryAfter } = await send('POST', objectPath(number), String(number))
    counts.uploads++
    if (status === 200 || status === 201) acknowledged.push(number)
    else if (status === 503 && retryAfter !== null) counts.retryableUploads++
    else wrong.push(`POST: ${status} ${text}`)
  }
  const run = async (work: (number: number) => Promise<void>) => {
    for (let number = 1; !isStopped; number++) {
      await work(number)
      await sleep(waitMs)
    }
  }
  const ended = Promise.all([run(read), run(upload)])
  t.teardown(() => (isStopped = true))

  return {
    /** Returns how many requests were sent, and how many of them got a 503 with the time of a later attempt. */
    counts: () => ({ ...counts }),
    /** Returns the maximum pause of reads since the last call. */
    takeMaxReadPause(): ReadPause {
      const pause = maxReadPause
      maxReadPause = { milliseconds: 0, course: [] }
      return pause
    },
    /** Stops, and returns what was wrong, acknowledged uploads that are missing included. */
    async stop() {
      isStopped = true
      await ended
      for (const number of acknowledged) {
        const { status, text } = await send('GET', objectPath(number))
        if (status !== 200 || text !== String(number)) wrong.push(`the object ${number}: ${status} ${text}`)
      }
      return { ...counts, maxMilliseconds, wrong, requests }
    },
  }
}
