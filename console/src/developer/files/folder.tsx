// One folder of a bucket: its files, uploads by the browser's dialog or by drag and drop, previews, signed URLs, deletion.
import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { toApiError, type Loaded } from '../../api/use-load.ts'
import { Age, Bytes, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo } from '../../router.ts'
import { Preview, type StoredFile } from './preview.tsx'
import { objectPath } from './upload.ts'
import { Uploads } from './uploads.tsx'

/** An item of a folder: a file, or a folder, which has no ID. */
interface Item {
  name: string
  id: string | null
  updated_at: string | null
  metadata: { size?: number; mimetype?: string } | null
}

const pageSize = 100

/** The screen of a folder. `prefix` is empty or ends with a slash. */
export function FolderScreen({ bucket, prefix }: { bucket: string; prefix: string }) {
  const [page, setPage] = useState(0)
  const load = useFolder(bucket, prefix, page)
  const [shown, setShown] = useState<{ is: 'preview' | 'delete'; file: StoredFile } | undefined>(undefined)
  const close = () => setShown(undefined)
  return (
    <>
      <Path bucket={bucket} prefix={prefix} />
      <ScreenTitle title={prefix === '' ? bucket : (prefix.split('/').at(-2) ?? prefix)} />
      {shown?.is === 'preview' && <Preview bucket={bucket} file={shown.file} onClose={close} />}
      {shown?.is === 'delete' && (
        <Confirm
          title="Delete the file"
          submit={['Delete the file', 'Deleting …']}
          kind="danger"
          onClose={close}
          onConfirm={async () => {
            await call('DELETE', objectPath('object', bucket, shown.file.path))
            load.reload()
          }}
        >
          <p>
            <code>{shown.file.path}</code> is deleted for good.
          </p>
        </Confirm>
      )}
      <Uploads bucket={bucket} prefix={prefix} onDone={load.reload}>
        <Card title="Content">
          <Load load={load} what="the folder">
            {(items) =>
              items.length === 0 ? (
                <Empty title="The folder is empty.">Upload the first file above.</Empty>
              ) : (
                <Table
                  label="Content of the folder"
                  rows={items}
                  rowKey={({ name, id }) => `${id === null ? 'folder' : 'file'} ${name}`}
                  columns={[
                    {
                      title: 'Name',
                      cell: ({ name, id }) =>
                        id === null ? (
                          <a href={linkTo(['files', bucket, ...`${prefix}${name}`.split('/')])}>{name}/</a>
                        ) : (
                          name
                        ),
                    },
                    {
                      title: 'Type',
                      cell: ({ id, metadata }) => (id === null ? 'folder' : (metadata?.mimetype ?? '–')),
                    },
                    {
                      title: 'Size',
                      isNumber: true,
                      cell: ({ metadata }) => (metadata?.size === undefined ? '–' : <Bytes bytes={metadata.size} />),
                    },
                    { title: 'Changed', cell: ({ updated_at: at }) => <Age at={at} /> },
                    {
                      title: 'Actions',
                      cell: ({ name, id, metadata }) => {
                        if (id === null) return <span class="dim">–</span>
                        const file = {
                          path: `${prefix}${name}`,
                          type: metadata?.mimetype ?? '',
                          size: metadata?.size ?? 0,
                        }
                        return (
                          <span class="row-actions">
                            <button
                              type="button"
                              class="button small"
                              onClick={() => setShown({ is: 'preview', file })}
                            >
                              Open
                            </button>
                            <button type="button" class="button small" onClick={() => setShown({ is: 'delete', file })}>
                              Delete
                            </button>
                          </span>
                        )
                      },
                    },
                  ]}
                />
              )
            }
          </Load>
          {(page > 0 || (load.data?.length ?? 0) === pageSize) && (
            <nav class="pager" aria-label="Pages">
              <button type="button" class="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
                Previous
              </button>
              <span>Page {page + 1}</span>
              <button
                type="button"
                class="button"
                disabled={(load.data?.length ?? 0) < pageSize}
                onClick={() => setPage(page + 1)}
              >
                Next
              </button>
            </nav>
          )}
        </Card>
      </Uploads>
    </>
  )
}

function Path({ bucket, prefix }: { bucket: string; prefix: string }) {
  const folders = prefix.split('/').filter((name) => name !== '')
  return (
    <p class="crumbs">
      <a href={linkTo(['files'])}>Files</a>
      {folders.length > 0 && (
        <>
          {' / '}
          <a href={linkTo(['files', bucket])}>{bucket}</a>
        </>
      )}
      {folders.slice(0, -1).map((name, at) => (
        <>
          {' / '}
          <a href={linkTo(['files', bucket, ...folders.slice(0, at + 1)])}>{name}</a>
        </>
      ))}
    </p>
  )
}

/** Loads a page of a folder, which the API lists for a POST. */
function useFolder(bucket: string, prefix: string, page: number): Loaded<Item[]> {
  const [turn, setTurn] = useState(0)
  const empty: Omit<Loaded<Item[]>, 'reload'> = {
    data: undefined,
    etag: undefined,
    headers: undefined,
    error: undefined,
    isLoading: true,
  }
  const [state, setState] = useState(empty)
  useEffect(() => {
    const stopping = new AbortController()
    const body = { prefix, limit: pageSize, offset: page * pageSize, sortBy: { column: 'name', order: 'asc' } }
    const path = `/storage/v1/object/list/${encodeURIComponent(bucket)}`
    call<Item[]>('POST', path, { body, signal: stopping.signal }).then(
      ({ body: data }) => setState({ ...empty, data, isLoading: false }),
      (error: unknown) => {
        if (!stopping.signal.aborted) setState({ ...empty, error: toApiError(error), isLoading: false })
      },
    )
    return () => stopping.abort()
  }, [bucket, prefix, page, turn])
  return { ...state, reload: () => setTurn((before) => before + 1) }
}
