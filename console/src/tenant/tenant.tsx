// One tenant: its state, its actions, and a tab for each subject.
import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Scope, Tenant } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { Age, Badge, ScreenTitle } from '../parts/basics.tsx'
import { ErrorBox, Load, Notice } from '../parts/feedback.tsx'
import { useAction } from '../parts/form.tsx'
import { linkTo } from '../router.ts'
import { useIsAdmin, useSession } from '../session.ts'
import { BackupsTab } from './backups.tsx'
import { DriftTab } from './drift.tsx'
import { InvoicesTab } from './invoices.tsx'
import { LogsTab } from './logs.tsx'
import { OverviewTab } from './overview.tsx'
import { SettingsTab } from './settings.tsx'
import type { TabProps } from './tab-props.ts'
import { TenantDialog, type DialogName } from './tenant-dialogs.tsx'
import { UsageTab } from './usage.tsx'

const tabs: { path: string; title: string; scopes: readonly Scope[] }[] = [
  { path: 'overview', title: 'Overview', scopes: ['admin', 'read', 'billing'] },
  { path: 'logs', title: 'Logs', scopes: ['admin', 'read'] },
  { path: 'usage', title: 'Usage', scopes: ['admin', 'read', 'billing'] },
  { path: 'invoices', title: 'Invoices', scopes: ['admin', 'read', 'billing'] },
  { path: 'backups', title: 'Backups', scopes: ['admin', 'read'] },
  { path: 'drift', title: 'Drift', scopes: ['admin', 'read'] },
  { path: 'settings', title: 'Settings', scopes: ['admin'] },
]

/** The screen of one tenant. */
export function TenantScreen({ id, tab }: { id: string; tab: string }) {
  const { scope } = useSession()
  const load = useLoad<Tenant>(`/v1/tenants/${encodeURIComponent(id)}`, { tenant: id })
  const allowed = tabs.filter(({ scopes }) => scopes.includes(scope))
  const current = allowed.find(({ path }) => path === tab) ?? allowed[0]
  const tabsRef = useRef<HTMLElement>(null)
  const isLoaded = load.data !== undefined
  // Narrow screens have room for some tabs only, and the current one must be among them.
  useEffect(() => {
    const link = tabsRef.current?.querySelector<HTMLElement>('[aria-current]')
    if (tabsRef.current && link) tabsRef.current.scrollLeft = link.offsetLeft - tabsRef.current.clientWidth / 3
  }, [current?.path, isLoaded])
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['fleet'])}>Fleet</a>
      </p>
      <Load load={load} what="the tenant">
        {(tenant) => (
          <>
            <ScreenTitle
              title={tenant.name}
              note={
                <>
                  <Badge text={tenant.status} /> {tenant.plan} · {tenant.region} · {tenant.isolation} ·{' '}
                  <code>{tenant.tenant_id}</code>
                </>
              }
            >
              <Actions tenant={tenant} reload={load.reload} />
            </ScreenTitle>
            <State tenant={tenant} />
            <nav class="tabs" aria-label="Subjects of the tenant" ref={tabsRef}>
              <ul>
                {allowed.map(({ path, title }) => (
                  <li key={path}>
                    <a href={linkTo(['tenants', id, path])} aria-current={path === current?.path ? 'page' : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <Tab path={current?.path ?? 'overview'} tenant={tenant} etag={load.etag} reload={load.reload} />
          </>
        )}
      </Load>
    </>
  )
}

function Tab({ path, ...props }: TabProps & { path: string }) {
  switch (path) {
    case 'logs':
      return <LogsTab {...props} />
    case 'usage':
      return <UsageTab {...props} />
    case 'invoices':
      return <InvoicesTab {...props} />
    case 'backups':
      return <BackupsTab {...props} />
    case 'drift':
      return <DriftTab {...props} />
    case 'settings':
      return <SettingsTab {...props} />
    default:
      return <OverviewTab {...props} />
  }
}

/** What an operator must know at once about the tenant's state. */
function State({ tenant }: { tenant: Tenant }) {
  return (
    <>
      {tenant.status === 'failed' && (
        <Notice kind="bad">
          <strong>The tenant has failed.</strong> {tenant.reason}
        </Notice>
      )}
      {tenant.status !== 'failed' && tenant.reason !== null && (
        <Notice kind="warn">
          <strong>The last change is not in effect yet.</strong> {tenant.reason}
        </Notice>
      )}
      {tenant.status === 'deleting' && tenant.purge_after !== null && (
        <Notice kind="warn">
          The tenant is deleted. Its data is destroyed <Age at={tenant.purge_after} />; until then you can undelete it.
        </Notice>
      )}
      {tenant.suspend_reason !== null && (
        <Notice kind="warn">
          Suspended{tenant.payment_required ? ', until it pays' : ''}: {tenant.suspend_reason}
        </Notice>
      )}
      {tenant.isolation_mismatch !== null && <Notice kind="info">{tenant.isolation_mismatch.message}</Notice>}
    </>
  )
}

function Actions({ tenant, reload }: { tenant: Tenant; reload: () => void }) {
  const isAdmin = useIsAdmin()
  const action = useAction()
  const [dialog, setDialog] = useState<DialogName | undefined>(undefined)
  if (!isAdmin) return null
  const path = `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}`
  const run = (work: () => Promise<unknown>) =>
    action.run(async () => {
      await work()
      reload()
    })
  const { status } = tenant
  const isDedicated = tenant.isolation !== 'schema-per-tenant'
  const button = (text: string, onClick: () => void, more = '') => (
    <button type="button" class={`button ${more}`} disabled={action.isRunning} onClick={onClick}>
      {text}
    </button>
  )
  return (
    <>
      {status === 'deleting' ? (
        button('Undelete', () => run(() => call('POST', `${path}/undelete`)), 'primary')
      ) : (
        <>
          {isDedicated && status === 'paused' && button('Wake', () => run(() => call('POST', `${path}/wake`)))}
          {isDedicated && status === 'ready' && button('Pause', () => run(() => call('POST', `${path}/pause`)))}
          {isDedicated && button('Restart', () => run(() => call('POST', `${path}/restart`)))}
          {status === 'suspended'
            ? button('Resume', () => run(() => call('PATCH', path, { body: { suspended: false } })), 'primary')
            : button('Suspend', () => setDialog('suspend'))}
          {button('Rotate keys', () => setDialog('rotate'))}
          {button('Delete', () => setDialog('delete'), 'danger')}
        </>
      )}
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {dialog !== undefined && (
        <TenantDialog name={dialog} tenant={tenant} onDone={reload} onClose={() => setDialog(undefined)} />
      )}
    </>
  )
}
