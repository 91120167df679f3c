// The internal routes with which a backup of a tenant on a shared runtime reads and writes the tenant's blobs. They need no
// manifest of the tenant, because a restored tenant has none yet. Gateways do not forward them.
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { isTenantId } from '@tenantry/contract'
import { RuntimeError } from '../errors.ts'
import { blobName, type BlobBackend, type OpenBlob } from './backend/backend.ts'

const blobPath = '/internal/v1/tenants/:id/blobs/:blob'
const storePath = '/internal/v1/tenants/:id/store'

interface BlobParams {
  id: string
  blob: string
}

/** @param region ID of the region whose tenants the runtime serves; undefined if it receives those of all regions */
export function addCopyRoutes(app: FastifyInstance, backend: BlobBackend, region: string | undefined): void {
  // Bodies are not parsed, whatever their type is.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))

  app.get<{ Params: { id: string } }>(storePath, { config: { access: 'internal' } }, async ({ params }) => ({
    store_id: (await backend.storeId(checkedTenant(params.id))) ?? null,
    stores: backend.stores,
    region: region ?? null,
  }))

  app.put<{ Params: BlobParams }>(`${storePath}/:blob`, { config: { access: 'internal' } }, async ({ params }) => {
    const { id, blob } = checked(params)
    backend.readmitTenant(id)
    return { store_id: await backend.claimStore(id, blob) }
  })

  app.get<{ Params: BlobParams }>(blobPath, { config: { access: 'internal' } }, async ({ params, query }, reply) => {
    const { open, size } = await opened(backend, params, query)
    reply.type('application/octet-stream')
    if (size > 0) return reply.send(open.stream(0, size - 1))
    await open.close()
    return reply.send('')
  })

  app.get<{ Params: BlobParams }>(
    `${blobPath}/sha256`,
    { config: { access: 'internal' } },
    async ({ params, query }) => {
      const { open, size } = await opened(backend, params, query)
      try {
        const hash = createHash('sha256')
        if (size > 0) for await (const chunk of open.read(0, size - 1)) hash.update(chunk)
        return { sha256: hash.digest('hex') }
      } finally {
        await open.close()
      }
    },
  )

  app.put<{ Params: BlobParams }>(blobPath, { config: { access: 'internal' } }, async ({ params, raw }) => {
    const { id, blob } = checked(params)
    // A write that fails removes the file.
    const existing = await backend.open(id, blob)
    await existing?.close()
    if (existing !== undefined) throw new RuntimeError('BAD_REQUEST', 'The file exists already.')
    return backend.put(id, blob, raw, Number.MAX_SAFE_INTEGER)
  })
}

/** Opens the blob of a request. @throws RuntimeError */
async function opened(
  backend: BlobBackend,
  params: BlobParams,
  query: unknown,
): Promise<{ open: OpenBlob; size: number }> {
  const { id, blob } = checked(params)
  const size = Number((query as { size?: string }).size)
  if (!Number.isSafeInteger(size) || size < 0) throw new RuntimeError('BAD_REQUEST', 'The size is invalid.')
  const open = await backend.open(id, blob)
  if (open === undefined) throw new RuntimeError('NOT_FOUND', 'There is no such file.')
  return { open, size }
}

function checkedTenant(id: string): string {
  if (!isTenantId(id)) throw new RuntimeError('NOT_FOUND', 'There is no such tenant.')
  return id
}

function checked({ id, blob }: BlobParams): BlobParams {
  if (!blobName.test(blob)) throw new RuntimeError('NOT_FOUND', 'There is no such file.')
  return { id: checkedTenant(id), blob }
}
