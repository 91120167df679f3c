// Decides whether a durability test passes: reads the whole state, sweeps, and compares rows, files, counters and the
// responses that users received. Call it only while there are no writers.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ApiResponse } from '#test/support/runtime.ts'
import { sha256, type Load } from './writers.ts'
import type { Request, Scene } from './scene.ts'

export interface Findings {
  /** Rows without a file. */
  phantoms: string[]
  /** Files with other bytes than their row records. */
  torn: string[]
  /** Acknowledged changes that are not present, or deletes whose objects are. */
  lost: string[]
  /** Files without a row that remain after the sweep. */
  orphans: string[]
  /** Counters and lists that must be zero. */
  counters: Record<string, unknown>
  /** The reason why the sweeper removed nothing. */
  stopReason: string | undefined
}

export const sound: Findings = {
  phantoms: [],
  torn: [],
  lost: [],
  orphans: [],
  stopReason: undefined,
  counters: { intents: 0, collectable: 0, reserved: 0, count_off: 0, bytes_off: 0, buckets_off: 0 },
}

const atOnce = 16

export async function inspect(scene: Scene, request: Request, load: Load): Promise<Findings> {
  const { rows, collector, tenant, blobs } = scene
  const objects = await rows(
    `select b.name || '/' || o.path as key, o.size::int, o.etag from storage_objects o
      join storage_buckets b on b.id = o.bucket_id order by 1`,
  )
  const buckets = await rows("select name from storage_buckets where name like 'own-%'")
  const found = new Map(buckets.map(({ name }) => [`${String(name)}/`, 'bucket']))
  const [phantoms, torn, unreadable]: [string[], string[], string[]] = [[], [], []]
  const queue = [...objects]
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
        const key = String(row['key'])
        const response = await readWithRetries(() =>
          request('GET', `/storage/v1/object/${key.split('/').map(encodeURIComponent).join('/')}`),
        ).catch(() => undefined)
        if (response === undefined) {
          // The body ended before its declared length.
          torn.push(key)
          continue
        }
        const { status, bytes, text } = response
        const content = sha256(bytes)
        found.set(key, content)
        if (status === 404) phantoms.push(key)
        else if (status !== 200) unreadable.push(`${key}: ${status} ${text}`)
        else if (content !== row['etag'] || bytes.length !== row['size']) torn.push(key)
      }
    }),
  )
  const lost = [...unreadable, ...load.compare(found)]

  await collector.sweep(tenant)
  const { stopReason } = await collector.sweep(tenant)
  const known = new Set((await rows('select blob_id::text from storage_objects')).map((row) => row['blob_id']))
  const files = await readdir(join(blobs, tenant.id), { recursive: true, withFileTypes: true })
  const orphans = files
    .filter((file) => file.isFile() && file.name !== 'store' && !known.has(file.name))
    .map(({ name }) => name)
  const [counters = {}] = await rows(
    `select (select count(*) from blob_intents)::int as intents, (select count(*) from blob_gc)::int as collectable,
       reserved_bytes::int as reserved, file_count::int - (select count(*) from storage_objects)::int as count_off,
       file_bytes::int - (select coalesce(sum(size), 0) from storage_objects)::int as bytes_off,
       (select count(*) from storage_buckets b left join storage_bucket_counters c on c.bucket_id = b.id
         where c.file_count is distinct from (select count(*) from storage_objects o where o.bucket_id = b.id)
            or c.total_size is distinct from
              (select coalesce(sum(o.size), 0) from storage_objects o where o.bucket_id = b.id))::int as buckets_off
     from storage_usage`,
  )
  return {
    phantoms,
    torn,
    lost,
    orphans: [...orphans, ...(await readdir(join(blobs, 'tmp')))],
    counters,
    stopReason,
  }
}

/** Repeats a read that returns 503, because a busy machine may need several attempts. */
async function readWithRetries(read: () => Promise<ApiResponse>): Promise<ApiResponse> {
  const deadline = Date.now() + 120_000
  for (;;) {
    const response = await read()
    if (response.status !== 503 || Date.now() > deadline) return response
  }
}
