// One statement of SQL with the rights of the tenant's own SQL login: its rows, or Postgres' error with its position.
import { useState } from 'preact/hooks'
import { call, type ApiError } from '../../api/client.ts'
import { Card, ScreenTitle } from '../../parts/basics.tsx'
import { ErrorBox } from '../../parts/feedback.tsx'
import { useAction } from '../../parts/form.tsx'
import type { EditorText } from './code-mirror.ts'
import { Result, type SqlBody } from './result.tsx'
import { SqlEditor } from './sql-editor.tsx'

/** A statement that was sent: its text, and its offset in the editor's text of that time. */
interface Sent {
  text: string
  from: number
  whole: string
}

/** The screen of SQL. */
export function SqlScreen() {
  const action = useAction()
  const [{ text, selection }, setText] = useState<EditorText>({ text: '', selection: { from: 0, to: 0 } })
  const [sent, setSent] = useState<Sent>({ text: '', from: 0, whole: '' })
  const [writes, setWrites] = useState(false)
  const [result, setResult] = useState<SqlBody | undefined>(undefined)
  const [version, setVersion] = useState(0)
  const selected = text.slice(selection.from, selection.to)
  const runsSelection = selected.trim() !== ''
  const statement: Sent = {
    ...(runsSelection ? { text: selected, from: selection.from } : { text, from: 0 }),
    whole: text,
  }
  const run = async () => {
    setResult(undefined)
    setSent(statement)
    const body = { query: statement.text, ...(writes ? { write: true } : {}) }
    setResult((await call<SqlBody>('POST', '/sql/v1', { body })).body)
    // The statement may have created a table.
    if (writes) setVersion(version + 1)
  }
  const isEmpty = statement.text.trim() === ''
  const errorAt = errorOffset(action.error, sent)
  return (
    <>
      <ScreenTitle title="SQL" note="One statement, with the rights and limits of your SQL login, for at most 10 s" />
      <Card>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            action.run(run)
          }}
        >
          <SqlEditor
            onChange={setText}
            onRun={() => {
              if (!isEmpty) action.run(run)
            }}
            errorAt={errorAt}
            version={version}
          />
          <div class="editor-foot">
            <button
              type="submit"
              class={`button ${writes ? 'danger' : 'primary'}`}
              disabled={action.isRunning || isEmpty}
            >
              {action.isRunning ? 'Running …' : runsSelection ? 'Run the selection' : 'Run the statement'}
            </button>
            <label class="check">
              <input type="checkbox" checked={writes} onInput={(event) => setWrites(event.currentTarget.checked)} />
              <span>Allow changes</span>
            </label>
            <p class="field-hint">
              <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, or only what is selected. <kbd>Esc</kbd>, then <kbd>Tab</kbd>{' '}
              leaves the editor.
            </p>
          </div>
          {action.error !== undefined && <ErrorBox error={action.error} />}
          <Details error={action.error} text={sent.whole} errorAt={errorAt} />
        </form>
      </Card>
      {result !== undefined && <Result result={result} />}
    </>
  )
}

/** Returns the offset of an error in the editor's text; undefined for an error without a position. */
function errorOffset(error: ApiError | undefined, { text, from }: Sent): number | undefined {
  const { position } = (error?.body ?? {}) as { position?: unknown }
  if (typeof position !== 'number') return undefined
  // Postgres counts code points, from 1.
  const before = Array.from(text).slice(0, position - 1)
  return from + before.join('').length
}

/** What Postgres reports about an error in addition to its message: the line, details and a hint. */
function Details({ error, text, errorAt }: { error: ApiError | undefined; text: string; errorAt: number | undefined }) {
  const { hint, details } = (error?.body ?? {}) as { hint?: unknown; details?: unknown }
  const line = errorAt === undefined ? undefined : text.slice(0, errorAt).split('\n').length
  const notes = [details, hint].filter((note) => typeof note === 'string')
  if (line === undefined && notes.length === 0) return null
  return (
    <div class="error-details">
      {line !== undefined && (
        <p>
          The error is in line {line}: <code>{text.split('\n')[line - 1]?.trim().slice(0, 200)}</code>
        </p>
      )}
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </div>
  )
}
