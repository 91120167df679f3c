// Drift of a tenant, field by field, and the repair of one field or of everything.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Drift, Operation } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Age, Badge, Card, Facts } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Empty, ErrorBox, Load } from '../parts/feedback.tsx'
import { useAction } from '../parts/form.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { linkTo } from '../router.ts'
import { useIsAdmin } from '../session.ts'
import { OperationProgress } from './operation-progress.tsx'
import type { TabProps } from './tab-props.ts'

type Difference = Drift['differences'][number]

const effects: Record<string, string> = {
  repair: 'Differences are repaired as soon as they are found.',
  report: 'Differences are reported and left.',
  ignore: 'Differences are left.',
}

/** The tab of drift. */
export function DriftTab({ tenant, reload }: TabProps) {
  const isAdmin = useIsAdmin()
  const action = useAction()
  const [operation, setOperation] = useState<string | undefined>(undefined)
  const [asked, setAsked] = useState<Difference[] | undefined>(undefined)
  const path = `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}`
  const drift = useLoad<Drift>(`${path}/drift`, { tenant: tenant.tenant_id })
  const all = drift.data?.differences ?? []
  const request = async (chosen: Difference[]) => {
    const fields = chosen.map(({ component, field }) => ({ component, field }))
    const body = chosen === all ? {} : { fields }
    const { body: begun } = await call<{ operation: Operation | null }>('POST', `${path}/drift/repair`, { body })
    setOperation(begun.operation?.id)
    reload()
    drift.reload()
  }
  const repair = (chosen: Difference[]) => {
    if (chosen.some((one) => one.repair.interrupts)) setAsked(chosen)
    else action.run(() => request(chosen))
  }
  return (
    <Card
      title="Drift"
      actions={
        <>
          <button type="button" class="button" onClick={drift.reload}>
            {drift.isLoading ? 'Observing …' : 'Observe again'}
          </button>
          {isAdmin && all.length > 0 && (
            <button type="button" class="button primary" disabled={action.isRunning} onClick={() => repair(all)}>
              Repair all differences
            </button>
          )}
        </>
      }
    >
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {operation !== undefined && (
        <OperationProgress
          id={operation}
          onEnd={() => {
            reload()
            drift.reload()
          }}
        />
      )}
      <Load load={drift} what="what exists on the engine">
        {(body) => (
          <>
            <Facts
              facts={[
                [
                  'State',
                  body.drifted ? <Badge text="drifted" kind="warn" /> : <Badge text="as specified" kind="good" />,
                ],
                [
                  'Policy',
                  <>
                    <code>{body.policy}</code> {effects[body.policy]}{' '}
                    {isAdmin && (
                      <a href={linkTo(['tenants', tenant.tenant_id, 'settings'])}>Change it in the settings</a>
                    )}
                  </>,
                ],
                ['Observed', <Age at={body.observed_at} />],
              ]}
            />
            {body.differences.length > 0 ? (
              <Table
                label="Differences"
                rows={body.differences}
                rowKey={({ component, field }) => `${component} ${field}`}
                columns={columnsOf(isAdmin ? (one) => repair([one]) : undefined, action.isRunning)}
              />
            ) : (
              <Empty title="Nothing differs.">
                {tenant.isolation === 'schema-per-tenant'
                  ? 'This tenant has no services of its own, so nothing of it can drift.'
                  : 'Containers, networks and volumes are as specified.'}
              </Empty>
            )}
          </>
        )}
      </Load>
      {isAdmin && all.length > 0 && tenant.drift_policy !== 'repair' && (
        <p class="dim">A repair leaves the policy as it is, so that later differences are left again.</p>
      )}
      {asked !== undefined && (
        <Confirm
          title="Repair and interrupt the tenant?"
          submit={['Repair', 'Repairing …']}
          onConfirm={() => request(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            The repair of <strong>{asked === all ? 'all differences' : asked.map(nameOf).join(', ')}</strong> changes{' '}
            {listOf(asked.flatMap((one) => one.repair.components))}. Requests to {tenant.name} may wait or fail
            meanwhile, usually for some seconds.
          </p>
          {asked !== all && alsoText(asked)}
        </Confirm>
      )}
    </Card>
  )
}

function columnsOf(repair: ((one: Difference) => void) | undefined, isRunning: boolean): Column<Difference>[] {
  return [
    { title: 'Component', cell: ({ component }) => <strong>{component}</strong> },
    { title: 'Field', cell: ({ field }) => field },
    { title: 'Should be', cell: ({ desired }) => <code>{String(desired)}</code> },
    { title: 'Is', cell: ({ observed }) => <code>{String(observed)}</code> },
    { title: 'Repair changes', cell: (one) => <Effect difference={one} /> },
    ...(repair === undefined
      ? []
      : [
          {
            title: 'Action',
            isWhole: true,
            cell: (one: Difference) => (
              <button
                type="button"
                class="button small"
                disabled={isRunning}
                aria-label={`Repair ${nameOf(one)}`}
                onClick={() => repair(one)}
              >
                {one.repair.interrupts ? 'Repair …' : 'Repair'}
              </button>
            ),
          },
        ]),
  ]
}

/** What else the repair of a difference changes, and whether requests may fail meanwhile. */
function Effect({ difference: { repair } }: { difference: Difference }) {
  const what =
    repair.scope === 'field'
      ? 'this field only'
      : repair.scope === 'tenant'
        ? 'everything of the tenant'
        : `all of ${listOf(repair.components)}`
  return (
    <>
      {what}
      {repair.also.length > 0 && ` (${repair.also.length} more)`}{' '}
      {repair.interrupts && <Badge text="interrupts" kind="warn" />}
    </>
  )
}

function alsoText(chosen: readonly Difference[]) {
  const also = chosen.flatMap((one) => one.repair.also.map(nameOf))
  if (also.length === 0) return null
  return <p>It also ends these differences: {also.join(', ')}.</p>
}

function nameOf({ component, field }: Pick<Difference, 'component' | 'field'>): string {
  return `${component} ${field}`
}

function listOf(names: readonly string[]): string {
  return [...new Set(names)].join(', ')
}
