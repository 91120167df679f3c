// The fleet: what needs attention first, then all tenants with search and filters.
import { useEffect, useState } from 'preact/hooks'
import type { Fleet, Paged, Plan, Region, Tenant, TenantInNeed } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Age, Badge, Card, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox } from '../parts/feedback.tsx'
import { PagedTable, usePages, type Column } from '../parts/table.tsx'
import { linkTo, open } from '../router.ts'
import { reasonAgainst, useSession } from '../session.ts'
import { creationAccess, fleetAccess } from './access.ts'
import { CreateTenant } from './create-tenant.tsx'

const statuses = ['ready', 'pending', 'suspended', 'paused', 'failed', 'deleting']

/** What each code of attention means, in the order of urgency. */
const attentionTitles: Record<string, [title: string, kind: 'bad' | 'warn']> = {
  Failed: ['Failed', 'bad'],
  Cluster: ['Cluster member lost', 'bad'],
  Loss: ['Tables lost', 'bad'],
  Disk: ['Disk', 'bad'],
  Sql: ['SQL login closed', 'warn'],
  Drift: ['Drift', 'warn'],
  ProofFailed: ['Backup not restorable', 'bad'],
  NotProven: ['Backup not proven', 'warn'],
  Quota: ['Over 80 % of a quota', 'warn'],
}

/** The tab of a tenant's screen that shows more about a code. */
const tabs: Record<string, string> = { Drift: 'drift', ProofFailed: 'backups', NotProven: 'backups', Quota: 'usage' }

/** The screen of all tenants. */
export function FleetScreen({ query }: { query: URLSearchParams }) {
  const session = useSession()
  const mayCreate = reasonAgainst(session, creationAccess) === undefined
  const mayReadFleet = reasonAgainst(session, fleetAccess) === undefined
  const fleet = useLoad<Fleet>(mayReadFleet ? '/v1/fleet' : undefined, 'all')
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <ScreenTitle
        title="Fleet"
        note={fleet.data !== undefined && <>{wholeNumber(fleet.data.tenants)} tenants in this installation</>}
      >
        {mayCreate && (
          <button type="button" class="button primary" onClick={() => setCreating(true)}>
            Create a tenant
          </button>
        )}
      </ScreenTitle>
      {isCreating && <CreateTenant onClose={() => setCreating(false)} />}
      {fleet.error !== undefined && <ErrorBox error={fleet.error} onRetry={fleet.reload} />}
      {mayReadFleet && fleet.data !== undefined && <Statuses fleet={fleet.data} selected={query.get('status') ?? ''} />}
      {mayReadFleet && <Attention fleet={fleet.data} code={query.get('attention') ?? ''} query={query} />}
      <Tenants query={query} onCreate={() => setCreating(true)} />
    </>
  )
}

/** Returns the parameters of the address with changes. */
function changed(query: URLSearchParams, changes: Record<string, string>): Record<string, string> {
  return { ...Object.fromEntries(query), ...changes }
}

function Statuses({ fleet, selected }: { fleet: Fleet; selected: string }) {
  const shown = statuses.filter(
    (status) => (fleet.by_status[status] ?? 0) > 0 || status === 'ready' || status === 'failed',
  )
  return (
    <ul class="tiles" aria-label="Tenants by status">
      {shown.map((status) => (
        <li key={status}>
          <a
            class={`tile ${status === selected ? 'is-selected' : ''} ${status === 'failed' && (fleet.by_status[status] ?? 0) > 0 ? 'tile-bad' : ''}`}
            href={linkTo(['fleet'], status === selected ? {} : { status })}
            aria-current={status === selected}
          >
            <span class="tile-number">{wholeNumber(fleet.by_status[status] ?? 0)}</span>
            <span class="tile-title">{status}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}

interface AttentionProps {
  fleet: Fleet | undefined
  code: string
  query: URLSearchParams
}

function Attention({ fleet, code, query }: AttentionProps) {
  const pages = usePages<Paged & { tenants: TenantInNeed[] }>(
    `/v1/fleet/attention${code === '' ? '' : `?code=${encodeURIComponent(code)}`}`,
    'all',
    20,
  )
  const counts: Partial<Record<string, number>> = fleet?.attention ?? {}
  const codes = Object.keys(attentionTitles).filter((one) => (counts[one] ?? 0) > 0 || one === code)
  const columns: Column<TenantInNeed>[] = [
    {
      title: 'Tenant',
      cell: (row) => <TenantLink id={row.tenant_id} name={row.name} tab={tabs[row.reasons[0]?.code ?? '']} />,
    },
    {
      title: 'What',
      cell: ({ reasons }) => (
        <ul class="reasons">
          {reasons.map((reason) => {
            const [title, kind] = attentionTitles[reason.code] ?? [reason.code, 'warn']
            return (
              <li key={`${reason.code} ${reason.message}`}>
                <Badge text={title} kind={kind} /> <span class="reason">{reason.message}</span>
                {reason.since !== null && (
                  <span class="dim">
                    {' '}
                    · <Age at={reason.since} />
                  </span>
                )}
              </li>
            )
          })}
        </ul>
      ),
    },
    { title: 'Plan', cell: ({ plan }) => plan, isMinor: true },
    { title: 'Region', cell: ({ region }) => region, isMinor: true },
  ]
  return (
    <Card title="Needs attention">
      {codes.length > 0 && (
        <ul class="chips" aria-label="Reasons">
          {codes.map((one) => (
            <li key={one}>
              <a
                class={`chip chip-${attentionTitles[one]?.[1] ?? 'warn'} ${one === code ? 'is-selected' : ''}`}
                href={linkTo(['fleet'], changed(query, { attention: one === code ? '' : one }))}
                aria-current={one === code}
              >
                {attentionTitles[one]?.[0] ?? one} <strong>{wholeNumber(counts[one] ?? 0)}</strong>
              </a>
            </li>
          ))}
        </ul>
      )}
      <PagedTable
        pages={pages}
        what="tenants that need attention"
        label="Tenants that need attention"
        columns={columns}
        rowsOf={({ tenants }) => tenants}
        rowKey={({ tenant_id: id }) => id}
        empty={
          <p class="all-good">
            <span aria-hidden="true">✓</span> Nothing needs attention: no tenant has failed, drifted, or reached 80 % of
            a quota, and all backups are proven.
          </p>
        }
      />
    </Card>
  )
}

function TenantLink({ id, name, tab }: { id: string; name: string; tab?: string | undefined }) {
  return (
    <a class="strong" href={linkTo(['tenants', id, ...(tab === undefined ? [] : [tab])])}>
      {name}
    </a>
  )
}

const searchMilliseconds = 200

function Tenants({ query, onCreate }: { query: URLSearchParams; onCreate: () => void }) {
  const creation = reasonAgainst(useSession(), creationAccess)
  const isLimitedToTenant = useSession().tenant_id !== null
  const plans = useLoad<{ plans: Plan[] }>('/v1/plans')
  const regions = useLoad<{ regions: Region[] }>(isLimitedToTenant ? undefined : '/v1/regions')
  const given = (name: string) => query.get(name) ?? ''
  const [search, setSearch] = useState(given('search'))
  const set = (changes: Record<string, string>) => open(linkTo(['fleet'], changed(query, changes)), { replace: true })
  useEffect(() => {
    if (search === given('search')) return undefined
    const timer = setTimeout(() => set({ search }), searchMilliseconds)
    return () => clearTimeout(timer)
  }, [search])

  const parameters = new URLSearchParams(
    ['search', 'status', 'plan', 'region'].flatMap((name) => (given(name) === '' ? [] : [[name, given(name)]])),
  ).toString()
  const pages = usePages<Paged & { tenants: Tenant[] }>(
    `/v1/tenants${parameters === '' ? '' : `?${parameters}`}`,
    'all',
  )
  const columns: Column<Tenant>[] = [
    { title: 'Name', cell: (tenant) => <TenantLink id={tenant.tenant_id} name={tenant.name} /> },
    {
      title: 'Status',
      cell: ({ status, reason }) => (
        <>
          <Badge text={status} /> {reason !== null && <span class="reason">{reason}</span>}
        </>
      ),
    },
    { title: 'Plan', cell: ({ plan }) => plan },
    { title: 'Region', cell: ({ region }) => region, isMinor: true },
    { title: 'Isolation', cell: ({ isolation }) => isolation, isMinor: true, isWhole: true },
    { title: 'ID', cell: ({ tenant_id: id }) => <code>{id}</code>, isMinor: true, isWhole: true },
    { title: 'Created', cell: ({ created_at: at }) => <Age at={at} />, isMinor: true },
  ]
  return (
    <Card title="All tenants">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="filter-search">
          <span>Search</span>
          <input
            type="search"
            value={search}
            placeholder="A part of the name, or an ID"
            maxLength={63}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <Filter name="Status" value={given('status')} options={statuses} onInput={(status) => set({ status })} />
        <Filter
          name="Plan"
          value={given('plan')}
          options={plans.data?.plans.map(({ id }) => id) ?? []}
          onInput={(plan) => set({ plan })}
        />
        <Filter
          name="Region"
          value={given('region')}
          options={regions.data?.regions.map(({ id }) => id) ?? []}
          onInput={(region) => set({ region })}
        />
      </form>
      <PagedTable
        pages={pages}
        what="tenants"
        label="Tenants"
        columns={columns}
        rowsOf={({ tenants }) => tenants}
        rowKey={({ tenant_id: id }) => id}
        empty={
          parameters === '' ? (
            <Empty title="There are no tenants yet.">
              {creation === undefined ? (
                <button type="button" class="button primary" onClick={onCreate}>
                  Create the first tenant
                </button>
              ) : (
                <>You cannot create one. {creation}</>
              )}
            </Empty>
          ) : (
            <Empty title="No tenant matches.">
              <a href={linkTo(['fleet'])} onClick={() => setSearch('')}>
                Remove the search and all filters
              </a>
            </Empty>
          )
        }
      />
    </Card>
  )
}

interface FilterProps {
  name: string
  value: string
  options: readonly string[]
  onInput: (value: string) => void
}

function Filter({ name, value, options, onInput }: FilterProps) {
  return (
    <label>
      <span>{name}</span>
      <select value={value} onInput={(event) => onInput(event.currentTarget.value)}>
        <option value="">All</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  )
}
