// Lists the entries of a folder, page by page with an offset. In the order of names, a page starts from a position that
// earlier pages returned, if the bucket's contents have not changed.
import type { Row } from '../../database/statement.ts'
import { contextSettings, type RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { read } from '../buckets/bucket-store.ts'
import type { FolderPositions, Position } from './folder-positions.ts'
import { folderStatement, kinds, type FolderQuery } from './folder-statement.ts'
import { toObject, type StoredObject } from './object.ts'

type FolderEntry = { kind: 'folder'; name: string } | { kind: 'object'; name: string; object: StoredObject }

/** Lists the subfolders and then the objects of a folder. */
export async function listFolder(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  query: FolderQuery,
  positions: FolderPositions,
): Promise<FolderEntry[]> {
  const { folder, search, column, order, offset } = query
  // Our policies show all of a bucket or nothing, but a tenant can add policies by caller, so each caller has own positions.
  const listing = JSON.stringify([...contextSettings(tenant.id, context), bucket.id, folder, search, order])
  const known = column === 'name' ? positions.nearest(listing, offset) : undefined
  const [result] = await read(tenant, context, [folderStatement(bucket.id, query, known)])
  const rows = result?.rows ?? []
  const shown = rows.filter(({ kind }) => kind === kinds.folder || kind === kinds.object)
  const [first] = rows
  if (column === 'name' && first?.['kind'] === kinds.contents) {
    const passed = rows
      .filter(({ kind }) => kind === kinds.passedFolder || kind === kinds.passedObject)
      .map((row) => toPosition(row, Number(row['passed'])))
    positions.remember(listing, String(first['contents']), [
      ...passed,
      ...shown.slice(-1).map((row) => toPosition(row, offset + shown.length)),
    ])
  }
  return shown.map((row) => {
    const name = String(row['key']).slice(folder.length)
    return row['kind'] === kinds.object
      ? { kind: 'object', name, object: toObject(row) }
      : { kind: 'folder', name: name.slice(0, -1) }
  })
}

function toPosition({ kind, key }: Row, passed: number): Position {
  return { passed, key: String(key), isFolder: kind === kinds.folder || kind === kinds.passedFolder }
}
