// The progress of a move: its phase, what is copied, what it waits for, and how to cancel it.
import { useEffect, useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Operation } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Badge, Bytes, Facts } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { ErrorBox } from '../parts/feedback.tsx'
import { destinationOf, originOf } from './move-ends.ts'

const pollMs = 1_000

const phases: Record<string, string> = {
  prepare: 'the target is opened, and the tables are published',
  copy: 'the home is copied from one snapshot',
  'catch up': 'the changes since then are applied',
  compare: 'the content of every table is compared',
  hold: 'requests wait while the last changes are applied',
  switch: 'the home is in its new database; requests are released when the runtimes use it',
  done: 'the home is served from its new database',
}

/** The phases from which nothing leads back but a revert. */
const switchedPhases = ['switch', 'done']

interface MoveProgressProps {
  /** The operation as it was loaded first. */
  begun: Operation
  canCancel: boolean
  /** Called once when the operation has ended. */
  onEnd: () => void
}

/** Follows a move, or its revert, until it ends. */
export function MoveProgress({ begun, canCancel, onEnd }: MoveProgressProps) {
  const path = `/v1/operations/${encodeURIComponent(begun.id)}`
  const load = useLoad<Operation>(path, { everyMs: pollMs })
  const [isAsked, setAsked] = useState(false)
  const [isCanceled, setCanceled] = useState(false)
  const { state, step, finished, move } = load.data ?? begun
  const isOver = finished !== null
  useEffect(() => {
    if (isOver) onEnd()
  }, [isOver])
  if (move === undefined) return null
  const { reverts, rows, bytes, pending_bytes: pending, waits_for: waitsFor } = move
  const isSwitched = step !== null && switchedPhases.includes(step)
  return (
    <section aria-label="Move in progress">
      {load.error !== undefined && <ErrorBox error={load.error} />}
      <p class="operation-progress" role="status">
        <strong>{reverts === null ? 'Move' : 'Revert'}</strong> <Badge text={isCanceled ? 'canceling' : state} />{' '}
        <code>{originOf(move)}</code> → <code>{destinationOf(move)}</code>
      </p>
      <Facts
        facts={[
          [
            'Phase',
            step === null ? (
              <span class="dim">not begun</span>
            ) : (
              <>
                <strong>{step}</strong>: {phases[step]}
              </>
            ),
          ],
          [
            'Copied',
            <>
              {wholeNumber(rows)} rows, <Bytes bytes={bytes} />
            </>,
          ],
          ['Log to apply', pending === null ? <span class="dim">–</span> : <Bytes bytes={pending} />],
          ['Waits for', waitsFor ?? <span class="dim">nothing</span>],
        ]}
      />
      {canCancel && !isCanceled && !isSwitched && !isOver && (
        <p>
          <button type="button" class="button" onClick={() => setAsked(true)}>
            Cancel the move
          </button>
        </p>
      )}
      {isAsked && (
        <Confirm
          title="Cancel the move"
          submit={[`Leave the home in ${originOf(move)}`, 'Canceling …']}
          kind="danger"
          onClose={() => setAsked(false)}
          onConfirm={async () => {
            await call('POST', `${path}/cancel`)
            setCanceled(true)
            load.reload()
          }}
        >
          <p>
            The tenant continues in <code>{originOf(move)}</code>.{' '}
            {reverts === null
              ? 'Everything that the move has created is removed.'
              : 'Changes flow back as before, so that you can revert the move again.'}
          </p>
        </Confirm>
      )}
    </section>
  )
}
