// The database of a tenant's home: the last move, its progress and its revert, and the begin of another one, also into services of
// the tenant's own and out of them.
import { useState } from 'preact/hooks'
import type { Operation, Paged } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { useNow } from '../format/times.ts'
import { Age, Badge, Card, Facts } from '../parts/basics.tsx'
import { ErrorBox } from '../parts/feedback.tsx'
import { useIsAdmin } from '../session.ts'
import { destinationOf, originOf } from './move-ends.ts'
import { ChangeIsolation, MoveHome, RevertMove } from './move-dialogs.tsx'
import { MoveProgress } from './move-progress.tsx'
import type { TabProps } from './tab-props.ts'

type Operations = Paged & { operations: Operation[] }

const titles: Record<string, string> = {
  'schema-per-tenant': 'Shared database',
  'cluster-per-tenant': 'Its own cluster',
}

/** Shows in which database the tenant's home is, and moves it. */
export function HomeDatabase({ tenant, reload }: TabProps) {
  const isAdmin = useIsAdmin()
  const now = useNow()
  const [dialog, setDialog] = useState<'move' | 'isolate' | 'revert' | undefined>(undefined)
  const live = { tenant: tenant.tenant_id }
  const path = `/v1/operations?tenant_id=${encodeURIComponent(tenant.tenant_id)}&kind=move&order=newest&limit=1`
  const moves = useLoad<Operations>(path, live)
  // A revert that failed leaves the move before it revertible.
  const succeeded = useLoad<Operations>(`${path}&state=succeeded`, live)
  const last = moves.data?.operations[0]
  // The two lists are loaded separately: the newest move is the last successful one before the second list contains it.
  const lastSucceeded = last?.state === 'succeeded' ? last : succeeded.data?.operations[0]
  const revertible = revertibleMove(lastSucceeded, now)
  const isIdle = moves.data !== undefined && (last === undefined || last.finished !== null)
  const canChange = isAdmin && isIdle && tenant.status === 'ready'
  const database = databaseOf(tenant)
  const isShared = tenant.isolation === 'schema-per-tenant'
  const changed = () => {
    reload()
    moves.reload()
    succeeded.reload()
  }
  const close = () => setDialog(undefined)
  return (
    <Card
      title={titles[tenant.isolation] ?? 'Its own Postgres'}
      actions={
        canChange ? (
          <>
            {isShared && (
              <button type="button" class="button" onClick={() => setDialog('move')}>
                Move the home
              </button>
            )}
            <button type="button" class="button" onClick={() => setDialog('isolate')}>
              Move to other services
            </button>
            {revertible !== undefined && (
              <button type="button" class="button" onClick={() => setDialog('revert')}>
                Revert the move
              </button>
            )}
          </>
        ) : undefined
      }
    >
      {moves.error !== undefined && <ErrorBox error={moves.error} onRetry={moves.reload} />}
      <Facts
        facts={[
          ['Database', <code>{database}</code>],
          ...(last?.move !== undefined && last.finished !== null ? [lastMove(last, last.move)] : []),
          ...revertFact(lastSucceeded?.move, revertible),
        ]}
      />
      {last !== undefined && last.finished === null && (
        <MoveProgress key={last.id} begun={last} canCancel={isAdmin} onEnd={changed} />
      )}
      {dialog === 'move' && (
        <MoveHome
          tenant={tenant}
          database={database}
          endsRevert={revertible !== undefined}
          onDone={changed}
          onClose={close}
        />
      )}
      {dialog === 'isolate' && (
        <ChangeIsolation tenant={tenant} endsRevert={revertible !== undefined} onDone={changed} onClose={close} />
      )}
      {dialog === 'revert' && revertible !== undefined && (
        <RevertMove tenant={tenant} move={revertible} onDone={changed} onClose={close} />
      )}
    </Card>
  )
}

/** The name of the database is the path of the URL. */
function databaseOf({ database_url: url }: TabProps['tenant']): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

type Move = NonNullable<Operation['move']>

/** Returns the move that can be reverted now; undefined for none. */
function revertibleMove(operation: Operation | undefined, now: number): Move | undefined {
  const until = operation?.move?.revertible_until ?? null
  return until !== null && Date.parse(until) > now ? operation?.move : undefined
}

type Fact = Parameters<typeof Facts>[0]['facts'][number]

function lastMove({ state, error, finished }: Operation, move: Move): Fact {
  return [
    move.reverts === null ? 'Last move' : 'Last revert',
    <>
      <Badge text={state} /> <code>{originOf(move)}</code> → <code>{destinationOf(move)}</code> <Age at={finished} />{' '}
      {error}
    </>,
  ]
}

/** Returns whether the last successful move can be reverted, or why not; an empty list if there is nothing to state. */
function revertFact(last: Move | undefined, revertible: Move | undefined): Fact[] {
  if (last === undefined || last.reverts !== null) return []
  if (revertible !== undefined) {
    return [
      [
        'Revert',
        <>
          to <code>{originOf(revertible)}</code>; the time for it ends <Age at={revertible.revertible_until} />
        </>,
      ],
    ]
  }
  const reason = last.not_revertible_reason ?? (last.revertible_until === null ? null : 'The time for it is over.')
  return reason === null ? [] : [['Revert', <>not possible: {reason}</>]]
}
