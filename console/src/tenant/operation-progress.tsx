// The progress of one operation that this screen has started: its state, its step, and its error.
import { useEffect } from 'preact/hooks'
import type { Operation } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Badge } from '../parts/basics.tsx'
import { ErrorBox } from '../parts/feedback.tsx'

/** The time between two reads of an operation in progress. Its steps are shorter than those of other screens. */
const pollMs = 400

/** Shows an operation until another one replaces it. @param onEnd is called once when it has ended */
export function OperationProgress({ id, onEnd }: { id: string; onEnd: () => void }) {
  const load = useLoad<Operation>(`/v1/operations/${encodeURIComponent(id)}`)
  const isOver = load.data !== undefined && load.data.finished !== null
  useEffect(() => {
    if (isOver) {
      onEnd()
      return undefined
    }
    const timer = setTimeout(load.reload, pollMs)
    return () => clearTimeout(timer)
  }, [isOver, load.data, load.error])
  if (load.data === undefined) return load.error === undefined ? null : <ErrorBox error={load.error} />
  const { kind, state, step, error } = load.data
  return (
    <p class="operation-progress" role="status">
      <strong>{kind}</strong> <Badge text={state} /> {isOver ? null : <span class="dim">{step ?? 'not begun'}</span>}{' '}
      {error}
    </p>
  )
}
