// Rebalances: moves of homes out of shared databases that exceed a limit, and of services between hosts. They are planned first.
import { useEffect, useState } from 'preact/hooks'
import { call, type ApiError } from '../api/client.ts'
import type {
  Paged,
  PlannedMove,
  PlannedServiceMove,
  PlannedSwitchover,
  Rebalance,
  RebalancePlan,
} from '../api/types.ts'
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

const tenantColumn: Column<{ tenant_id: string }> = {
  title: 'Tenant',
  cell: ({ tenant_id: id }) => (
    <a href={linkTo(['tenants', id])}>
      <code>{id}</code>
    </a>
  ),
}

const moveColumns: Column<PlannedMove>[] = [
  tenantColumn,
  { title: 'From', cell: ({ from }) => <code>{from}</code> },
  { title: 'To', cell: ({ to }) => <code>{to}</code> },
  { title: 'Size', isNumber: true, cell: ({ bytes }) => <Bytes bytes={bytes} /> },
]

const serviceColumns: Column<PlannedServiceMove>[] = [
  tenantColumn,
  { title: 'Service', cell: ({ service }) => <code>{service}</code> },
  { title: 'From', cell: ({ from }) => <code>{from}</code> },
  { title: 'To', cell: ({ to }) => <code>{to}</code> },
  { title: 'Memory', isNumber: true, cell: ({ memory_bytes: bytes }) => <Bytes bytes={bytes} /> },
]

const switchoverColumns: Column<PlannedSwitchover>[] = [
  tenantColumn,
  { title: 'Primary', cell: ({ from, from_host: host }) => `${from} on ${host}` },
  { title: 'Next primary', cell: ({ to, to_host: host }) => `${to} on ${host}` },
]

const serviceKey = ({ tenant_id: id, service }: PlannedServiceMove) => `${id} ${service}`

/** Returns the number of all moves of a plan or a rebalance. */
function countAll({ moves, service_moves: services, switchovers }: Pick<RebalancePlan, StepField>): number {
  return moves.length + services.length + switchovers.length
}

type StepField = 'moves' | 'service_moves' | 'switchovers'

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
  const count = plan === undefined ? 0 : countAll(plan)
  return (
    <Dialog title="Plan of a rebalance" onClose={onClose}>
      {error !== undefined && <ErrorBox error={error} />}
      {plan === undefined && error === undefined && <Loading what="the plan" />}
      {plan !== undefined &&
        (count === 0 ? (
          <Empty title="Nothing has to move.">
            No database exceeds its limits and the hosts are balanced, or nothing on them can move now.
          </Empty>
        ) : (
          <Form
            action={action}
            submit={[submitOf(plan), 'Starting …']}
            onCancel={onClose}
            onSubmit={async () => {
              await call('POST', `${path}/rebalance`, { body: { dry_run: false } })
              onStarted()
              onClose()
            }}
          >
            {plan.moves.length > 0 && (
              <Table label="Moves" rows={plan.moves} rowKey={({ tenant_id: id }) => id} columns={moveColumns} />
            )}
            {plan.service_moves.length > 0 && (
              <Table label="Moves of services" rows={plan.service_moves} rowKey={serviceKey} columns={serviceColumns} />
            )}
            {plan.switchovers.length > 0 && (
              <Table
                label="Switchovers"
                rows={plan.switchovers}
                rowKey={({ tenant_id: id }) => id}
                columns={switchoverColumns}
              />
            )}
            {plan.hosts_after.length > 0 && (
              <Table
                label="Hosts afterwards"
                rows={plan.hosts_after}
                rowKey={({ id }) => id}
                columns={[
                  { title: 'Host afterwards', cell: ({ id }) => <code>{id}</code> },
                  { title: 'Free memory', isNumber: true, cell: ({ free_bytes: bytes }) => shortBytes(bytes) },
                  { title: 'Services', isNumber: true, cell: ({ services }) => wholeNumber(services) },
                  { title: 'Primaries', isNumber: true, cell: ({ primaries }) => wholeNumber(primaries) },
                ]}
              />
            )}
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
            <p class="dim">
              Two moves are in progress at a time. Requests to a home wait for less than a second meanwhile, and writes
              of a cluster for some seconds during a switchover.
            </p>
          </Form>
        ))}
    </Dialog>
  )
}

function submitOf(plan: RebalancePlan): string {
  const count = countAll(plan)
  if (count > plan.moves.length) return count === 1 ? 'Begin 1 move' : `Begin ${wholeNumber(count)} moves`
  return count === 1 ? 'Move 1 home' : `Move ${wholeNumber(count)} homes`
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
          <p>No further move begins. What has moved stays where it is, and what moves now arrives.</p>
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
            { title: 'Moved', isNumber: true, cell: (one) => `${countOf(one, 'moved')} of ${countAll(one)}` },
            {
              title: 'Not moved',
              isNumber: true,
              cell: (one) => countOf(one, 'failed') + countOf(one, 'skipped'),
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

type Progress = Pick<Rebalance['moves'][number], 'state' | 'error'>

const stateColumn: Column<Progress> = { title: 'State', cell: ({ state }) => <Badge text={state} /> }
const errorColumn: Column<Progress> = {
  title: 'Error',
  cell: ({ error }) => error ?? <span class="dim">none</span>,
}

function Moves({ rebalance, onClose }: { rebalance: Rebalance; onClose: () => void }) {
  return (
    <Dialog title="Moves of the rebalance" onClose={onClose}>
      <Table
        label="Moves"
        rows={rebalance.moves}
        rowKey={({ tenant_id: id }) => id}
        columns={[stateColumn, ...moveColumns, errorColumn]}
      />
      {rebalance.service_moves.length > 0 && (
        <Table
          label="Moves of services"
          rows={rebalance.service_moves}
          rowKey={serviceKey}
          columns={[stateColumn, ...serviceColumns, errorColumn]}
        />
      )}
      {rebalance.switchovers.length > 0 && (
        <Table
          label="Switchovers"
          rows={rebalance.switchovers}
          rowKey={({ tenant_id: id }) => id}
          columns={[stateColumn, ...switchoverColumns, errorColumn]}
        />
      )}
    </Dialog>
  )
}

function countOf(rebalance: Rebalance, state: Progress['state']): number {
  const { moves, service_moves: services, switchovers } = rebalance
  return [...moves, ...services, ...switchovers].filter((move) => move.state === state).length
}
