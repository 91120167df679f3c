// The reload: applies the schemas to the tables, after the confirmation of changes that lose data.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { Card } from '../../parts/basics.tsx'
import { ErrorBox, Notice } from '../../parts/feedback.tsx'
import { useAction } from '../../parts/form.tsx'

interface ReloadBody {
  collections: string[]
  actions: string[]
  /** Lines that drop the table of a deleted schema, when they are confirmed. */
  droppable: string[]
  warnings: string[]
}

/** The button that reloads the schemas, and what the reload did. */
export function Reload({ onDone }: { onDone?: () => void }) {
  const action = useAction()
  const [result, setResult] = useState<ReloadBody | undefined>(undefined)
  const reload = (confirm: readonly string[]) =>
    action.run(async () => {
      setResult(undefined)
      const body = confirm.length === 0 ? {} : { confirm }
      setResult((await call<ReloadBody>('POST', '/admin/reload-schemas', { body })).body)
      onDone?.()
    })
  const { error } = action
  const changes = error === undefined ? [] : changesOf(error.body)
  return (
    <Card
      title="Reload"
      actions={
        <button type="button" class="button" disabled={action.isRunning} onClick={() => reload([])}>
          {action.isRunning ? 'Reloading …' : 'Reload the schemas'}
        </button>
      }
    >
      <p class="dim">Changes of schemas take effect only with a reload, which does everything or nothing.</p>
      {error !== undefined && <ErrorBox error={error} />}
      {changes.length > 0 && (
        <Lines title="These changes lose data:" lines={changes}>
          <button type="button" class="button danger" onClick={() => reload(changes)}>
            Confirm these changes and reload
          </button>
        </Lines>
      )}
      {result !== undefined && (
        <>
          <Notice kind="good">
            The reload is done.{' '}
            {result.actions.length === 0 ? 'Nothing had to change.' : `${result.actions.length} changes were made.`}
          </Notice>
          <Lines title="What it did:" lines={result.actions} />
          <Lines title="What is not served:" lines={result.warnings} />
          <Lines title="Tables whose schema was deleted:" lines={result.droppable}>
            <button type="button" class="button danger" onClick={() => reload(result.droppable)}>
              Drop these tables with their rows
            </button>
          </Lines>
        </>
      )}
    </Card>
  )
}

interface LinesProps {
  title: string
  lines: readonly string[]
  children?: ComponentChildren
}

function Lines({ title, lines, children }: LinesProps) {
  if (lines.length === 0) return null
  return (
    <div class="prose">
      <p>{title}</p>
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {children}
    </div>
  )
}

/** Returns the changes that a rejected reload needs a confirmation of. */
function changesOf(body: unknown): string[] {
  const changes = (body as { changes?: unknown } | undefined)?.changes
  return Array.isArray(changes) ? changes.filter((line) => typeof line === 'string') : []
}
