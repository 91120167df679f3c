// Rebalances: moves of homes out of shared databases that exceed a limit. They are planned first.
import { useEffect, useState } from 'preact/hooks'
import { call, type ApiError } from '../api/client.ts'
import type { Paged, PlannedMove, Rebalance, RebalancePlan } from '../api/types.ts'
import { toApiError, useLoad } from '../api/use-load.ts'
import { shortBytes, wholeNumber } from '../format/numbers.ts'
import { Age, Badge, Bytes } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, ErrorBox, Loading } from '../parts/feedback.tsx'
import { Form, useAction } from '../parts/form.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { linkTo } from '../router.ts'
import { useIsAdmin } from '../session.ts'
import { DatabaseState } from './database-state.tsx'

const reloadMs = 3_000
const shown = 5

const moveColumns: Column<PlannedMove>[] = [
  {
    title: 'Tenant',
    cell: ({ tenant_id: id }) => (
      <a href={linkTo(['tenants', id])}>
        <code>{id}</code>
      </a>
    ),
  },
  { title: 'From', cell: ({ from }) => <code>{from}</code> },
  { title: 'To', cell: ({ to }) => <code>{to}</code> },
  { title: 'Size', isNumber: true, cell: ({ bytes }) => <Bytes bytes={bytes} /> },
]

interface PlanProps {
  /** The path of the region. */
  path: string
  onClose: () => void
  onStarted: () => void
}

/** Shows the plan of a rebalance, and begins it. */
export function PlanRebalance({ path, onClose, onStarted }: PlanProps) {
  const action = useAction()
  const [plan, setPlan] = useState<RebalancePlan | undefined>(undefined)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  useEffect(() => {
    call<RebalancePlan>('POST', `${path}/rebalance`, { body: { dry_run: true } }).then(
      ({ body }) => setPlan(body),
      (cause: unknown) => setError(toApiError(cause)),
    )
  }, [path])
  return (
    <Dialog title="Plan of a rebalance" onClose={onClose}>
      {error !== undefined && <ErrorBox error={error} />}
      {plan === undefined && error === undefined && <Loading what="the plan" />}
      {plan !== undefined &&
        (plan.moves.length === 0 ? (
          <Empty title="No home has to move.">
            No database exceeds its limits, or none of the homes in it can move now.
          </Empty>
        ) : (
          <Form
            action={action}
            submit={[
              plan.moves.length === 1 ? 'Move 1 home' : `Move ${wholeNumber(plan.moves.length)} homes`,
              'Starting …',
            ]}
            onCancel={onClose}
            onSubmit={async () => {
              await call('POST', `${path}/rebalance`, { body: { dry_run: false } })
              onStarted()
              onClose()
            }}
          >
            <Table label="Moves" rows={plan.moves} rowKey={({ tenant_id: id }) => id} columns={moveColumns} />
            <Table
              label="Databases afterwards"
              rows={plan.databases_after}
              rowKey={({ name }) => name}
              columns={[
                { title: 'Database afterwards', cell: ({ name }) => <code>{name}</code> },
                { title: 'State', cell: ({ exceeds }) => <DatabaseState exceeds={exceeds} /> },
                { title: 'Homes', isNumber: true, cell: ({ homes }) => wholeNumber(homes) },
                { title: 'Size', isNumber: true, cell: ({ bytes }) => shortBytes(bytes) },
              ]}
            />
            <p class="dim">Two homes move at a time. Requests to a home wait for less than a second meanwhile.</p>
          </Form>
        ))}
    </Dialog>
  )
}

/** The last rebalances of a region. */
export function Rebalances({ region, path }: { region: string; path: string }) {
  const isAdmin = useIsAdmin()
  const { data, error, reload } = useLoad<Paged & { rebalances: Rebalance[] }>(`${path}/rebalances?limit=${shown}`, {
    everyMs: reloadMs,
  })
  const [opened, setOpened] = useState<string | undefined>(undefined)
  const [canceled, setCanceled] = useState<Rebalance | undefined>(undefined)
  const rebalances = data?.rebalances ?? []
  const details = rebalances.find(({ id }) => id === opened)
  return (
    <>
      {error !== undefined && data === undefined && <ErrorBox error={error} onRetry={reload} />}
      {details !== undefined && <Moves rebalance={details} onClose={() => setOpened(undefined)} />}
      {canceled !== undefined && (
        <Confirm
          title="Cancel the rebalance"
          submit={['Begin no further move', 'Canceling …']}
          kind="danger"
          onClose={() => setCanceled(undefined)}
          onConfirm={async () => {
            await call('POST', `${path}/rebalances/${canceled.id}/cancel`)
            reload()
          }}
        >
          <p>No further home moves. Homes that have moved stay where they are, and those that move now arrive.</p>
        </Confirm>
      )}
      {rebalances.length > 0 && (
        <Table
          label={`Rebalances of ${region}`}
          rows={rebalances}
          rowKey={({ id }) => id}
          columns={[
            { title: 'Rebalance', cell: ({ created }) => <Age at={created} /> },
            { title: 'State', cell: ({ state }) => <Badge text={state} /> },
            { title: 'Moved', isNumber: true, cell: ({ moves }) => `${countOf(moves, 'moved')} of ${moves.length}` },
            {
              title: 'Not moved',
              isNumber: true,
              cell: ({ moves }) => countOf(moves, 'failed') + countOf(moves, 'skipped'),
            },
            {
              title: 'Actions',
              cell: (rebalance) => (
                <>
                  <button type="button" class="button small" onClick={() => setOpened(rebalance.id)}>
                    Show the moves
                  </button>{' '}
                  {isAdmin && rebalance.state === 'running' && (
                    <button type="button" class="button small" onClick={() => setCanceled(rebalance)}>
                      Cancel the rebalance
                    </button>
                  )}
                </>
              ),
            },
          ]}
        />
      )}
    </>
  )
}

type Move = Rebalance['moves'][number]

function Moves({ rebalance, onClose }: { rebalance: Rebalance; onClose: () => void }) {
  return (
    <Dialog title="Moves of the rebalance" onClose={onClose}>
      <Table<Move>
        label="Moves"
        rows={rebalance.moves}
        rowKey={({ tenant_id: id }) => id}
        columns={[
          { title: 'State', cell: ({ state }) => <Badge text={state} /> },
          ...moveColumns,
          { title: 'Error', cell: ({ error }) => error ?? <span class="dim">none</span> },
        ]}
      />
    </Dialog>
  )
}

function countOf(moves: readonly Move[], state: Move['state']): number {
  return moves.filter((move) => move.state === state).length
}
