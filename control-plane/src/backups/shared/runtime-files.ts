// The files of a tenant on a shared runtime, over the runtime's internal API: so a backup reads and writes them wherever the
// runtime stores them.
import { Readable } from 'node:stream'
import { internalTokenHeader, sentToken, type InternalToken } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { Clock } from '../../platform/clock.ts'
import { BackupError } from '../backup-error.ts'
import type { BlobEntry } from '../blob-index.ts'

const callMilliseconds = 20_000
const fileMilliseconds = 3_600_000
const holdSeconds = 300
const renewMilliseconds = 60_000

const Store = Type.Object({ store_id: Type.Union([Type.String(), Type.Null()]) })
const RuntimeStores = Type.Object({
  stores: Type.Array(Type.String()),
  region: Type.Union([Type.String(), Type.Null()]),
})
/** The stores of a runtime's files, and the region whose tenants it serves; null if it receives those of all regions. */
export type RuntimeStores = Static<typeof RuntimeStores>
const Hashed = Type.Object({ sha256: Type.String() })
const Written = Type.Object({ size: Type.Integer(), sha256: Type.String() })

interface Call extends Omit<RequestInit, 'headers'> {
  headers?: Record<string, string>
}

/** Calls to the runtimes of a region about the files of one tenant. */
export type RuntimeFiles = ReturnType<ReturnType<typeof createRuntimeFiles>>

/** Creates the calls. `fetch` reaches the region's runtimes. */
export function createRuntimeFiles(internalToken: InternalToken, fetch: typeof globalThis.fetch, clock: Clock) {
  return (urls: readonly string[], tenantId: string) => {
    const call = (url: string, path: string, options: Call, signal: AbortSignal, milliseconds: number) =>
      fetch(new URL(`/internal/v1/tenants/${tenantId}/${path}`, url), {
        ...options,
        headers: { [internalTokenHeader]: sentToken(internalToken), ...options.headers },
        signal: AbortSignal.any([signal, clock.timeout(milliseconds)]),
      })
    const readStore = (signal: AbortSignal, url = first()) =>
      checked('read of the store', call(url, 'store', {}, signal, callMilliseconds))
    const first = () => {
      const [url] = urls
      if (url === undefined) throw new BackupError('FAILED', 'The region has no runtime.')
      return url
    }
    const checked = async (what: string, calling: Promise<Response>): Promise<Response> => {
      const response = await calling
      if (response.ok) return response
      await response.body?.cancel()
      throw new BackupError('FAILED', `The runtime responded with ${response.status} to the ${what}.`)
    }

    /** Holds the removal of files in each runtime while `work` runs, and aborts its signal when a hold is lost. */
    const whileHeld = async <T>(signal: AbortSignal, work: (held: AbortSignal) => Promise<T>): Promise<T> => {
      const lost = new AbortController()
      const hold = async (method: 'PUT' | 'DELETE', signal: AbortSignal) => {
        const body = method === 'PUT' ? { body: JSON.stringify({ seconds: holdSeconds }) } : {}
        const headers: Record<string, string> = method === 'PUT' ? { 'content-type': 'application/json' } : {}
        for (const url of urls) {
          const response = await checked(
            'hold',
            call(url, 'hold', { method, headers, ...body }, signal, callMilliseconds),
          )
          await response.body?.cancel()
        }
      }
      await hold('PUT', signal)
      const stop = clock.every(
        renewMilliseconds,
        () => void hold('PUT', signal).catch((cause: unknown) => lost.abort(cause)),
      )
      try {
        return await work(AbortSignal.any([signal, lost.signal]))
      } finally {
        stop()
        // A hold that is not released expires.
        await hold('DELETE', clock.timeout(callMilliseconds)).catch(() => undefined)
      }
    }

    /** Opens a file; undefined if the runtime has none of that name. */
    const open = async (
      blobId: string,
      size: number,
      signal: AbortSignal,
    ): Promise<AsyncIterable<Uint8Array> | undefined> => {
      const response = await call(first(), `blobs/${blobId}?size=${size}`, {}, signal, fileMilliseconds)
      if (response.status === 404) {
        await response.body?.cancel()
        return undefined
      }
      await checked('read of a file', Promise.resolve(response))
      return (response.body ?? Readable.from([])) as AsyncIterable<Uint8Array>
    }

    return {
      whileHeld,
      open,

      /** Returns the ID of the tenant's store; undefined if it has none. */
      async storeId(signal: AbortSignal): Promise<string | undefined> {
        const response = await readStore(signal)
        return Value.Parse(Store, await response.json()).store_id ?? undefined
      },

      /** Returns the stores of each runtime's files. */
      stores: (signal: AbortSignal): Promise<RuntimeStores[]> =>
        Promise.all(urls.map(async (url) => Value.Parse(RuntimeStores, await (await readStore(signal, url)).json()))),

      /** Gives the tenant's store an ID, unless it has one. Each runtime then accepts its files. @returns the store's ID */
      async claimStore(storeId: string, signal: AbortSignal): Promise<string> {
        let found = storeId
        for (const url of urls) {
          const claiming = call(url, `store/${storeId}`, { method: 'PUT' }, signal, callMilliseconds)
          const response = await checked('claim of the store', claiming)
          found = Value.Parse(Store, await response.json()).store_id ?? storeId
        }
        return found
      },

      /** Returns the hash of a file; undefined without it. The runtime reads it, so that its bytes are not sent. */
      async hashOf({ id, size }: Pick<BlobEntry, 'id' | 'size'>, signal: AbortSignal): Promise<string | undefined> {
        const response = await call(first(), `blobs/${id}/sha256?size=${size}`, {}, signal, fileMilliseconds)
        if (response.status === 404) {
          await response.body?.cancel()
          return undefined
        }
        await checked('hash of a file', Promise.resolve(response))
        return Value.Parse(Hashed, await response.json()).sha256
      },

      /** Whether the runtime has exactly this file. */
      async has({ id, size, sha256 }: BlobEntry, signal: AbortSignal): Promise<boolean> {
        const found = await this.hashOf({ id, size }, signal)
        if (found !== undefined && found !== sha256)
          throw new BackupError('MISMATCH', `The runtime has another file of the name ${id}.`)
        return found !== undefined
      },

      /** Writes a file that the runtime does not have. @returns what the runtime has written */
      async write(
        blobId: string,
        content: AsyncIterable<Uint8Array>,
        signal: AbortSignal,
      ): Promise<Omit<BlobEntry, 'id'>> {
        const body = Readable.toWeb(Readable.from(content, { objectMode: false }))
        const options = { method: 'PUT', body, duplex: 'half' } as unknown as Call
        const response = await checked(
          'write of a file',
          call(first(), `blobs/${blobId}`, options, signal, fileMilliseconds),
        )
        return Value.Parse(Written, await response.json())
      },
    }
  }
}
