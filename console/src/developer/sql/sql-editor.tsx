// The editor of a statement, which is loaded when the screen opens, with the names of the tenant's tables.
import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type ApiError } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import { ErrorBox, Loading } from '../../parts/feedback.tsx'
import type { Editor, EditorText, TableNames } from './code-mirror.ts'

interface SqlEditorProps {
  onChange: (state: EditorText) => void
  onRun: () => void
  /** The offset of an error in the text. */
  errorAt: number | undefined
  /** A number whose change reads the names of the tables again. */
  version: number
}

/** Tables and views with their columns, as SQL sees them now. The REST interface knows only those of the last reload. */
const namesQuery = `select c.relname, pg_catalog.json_agg(a.attname order by a.attnum)
from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = pg_catalog.current_schema())
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
group by c.relname order by c.relname`

/** The editor. */
export function SqlEditor({ errorAt, version, ...listeners }: SqlEditorProps) {
  const parent = useRef<HTMLDivElement>(null)
  const current = useRef(listeners)
  current.current = listeners
  const [editor, setEditor] = useState<Editor | undefined>(undefined)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    let isOpen = true
    let opened: Editor | undefined
    import('./code-mirror.ts').then(
      ({ openEditor }) => {
        if (!isOpen || parent.current === null) return
        opened = openEditor(parent.current, '', {
          onChange: (state) => current.current.onChange(state),
          onRun: () => current.current.onRun(),
        })
        setEditor(opened)
      },
      (cause: unknown) => setError(toApiError(cause)),
    )
    return () => {
      isOpen = false
      opened?.close()
    }
  }, [attempt])
  useEffect(() => {
    if (editor === undefined) return
    // Without the names, the editor completes keywords only. A statement reports the same error.
    readNames().then(editor.setTables, () => undefined)
  }, [editor, version])
  useEffect(() => editor?.markError(errorAt), [editor, errorAt])
  return (
    <>
      {editor === undefined && error === undefined && <Loading what="the editor" />}
      {error !== undefined && (
        <ErrorBox
          error={error}
          onRetry={() => {
            setError(undefined)
            setAttempt(attempt + 1)
          }}
        />
      )}
      <div ref={parent} class="editor" />
    </>
  )
}

async function readNames(): Promise<TableNames> {
  const { body } = await call<{ rows: [string, string][] }>('POST', '/sql/v1', { body: { query: namesQuery } })
  return Object.fromEntries(body.rows.map(([name, columns]) => [name, JSON.parse(columns) as string[]]))
}
