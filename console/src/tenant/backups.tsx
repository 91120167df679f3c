// Backups of a tenant: the last proven restore, the list, and creating, verifying and restoring.
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Backup, Paged, Tenant, TenantKeys } from '../api/types.ts'
import { exactBytes } from '../format/numbers.ts'
import { Age, Badge, Card } from '../parts/basics.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Empty, ErrorBox, Notice } from '../parts/feedback.tsx'
import { fieldError, Form, TextField, useAction } from '../parts/form.tsx'
import { Secrets } from '../parts/secrets.tsx'
import { PagedTable, usePages } from '../parts/table.tsx'
import { useIsAdmin, useSession } from '../session.ts'
import type { TabProps } from './tab-props.ts'

type Page = Paged & { backups: Backup[]; last_proven: { backup_id: string; at: string } | null }
type Open = { is: 'restore' | 'copy' | 'remove'; backup: Backup }

/** The tab of backups. */
export function BackupsTab({ tenant }: TabProps) {
  const isAdmin = useIsAdmin()
  const isLimitedToTenant = useSession().tenant_id !== null
  const pages = usePages<Page>(
    `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}/backups`,
    { tenant: tenant.tenant_id },
    100,
  )
  const [opened, setOpened] = useState<Open | undefined>(undefined)
  const action = useAction()
  const reload = pages.load.reload
  const write = (method: string, path: string) =>
    action.run(async () => {
      await call(method, path)
      reload()
    })
  const proven = pages.load.data?.last_proven
  return (
    <>
      {pages.load.data !== undefined &&
        (proven == null ? (
          <Notice kind="warn">
            <strong>No backup of this tenant was proven yet.</strong> A backup is proven once it was restored into a
            scratch home and found equal. Verify one to prove it now.
          </Notice>
        ) : (
          <Notice kind="good">
            <strong>
              Last proven restore: <Age at={proven.at} />.
            </strong>{' '}
            The backup <code>{proven.backup_id}</code> was restored and found equal.
          </Notice>
        ))}
      {action.error !== undefined && <ErrorBox error={action.error} />}
      {opened?.is === 'restore' && (
        <RestoreInPlace tenant={tenant} backup={opened.backup} onDone={reload} onClose={() => setOpened(undefined)} />
      )}
      {opened?.is === 'copy' && (
        <RestoreAsNew tenant={tenant} backup={opened.backup} onClose={() => setOpened(undefined)} />
      )}
      {opened?.is === 'remove' && (
        <Confirm
          title="Remove the backup"
          submit={['Remove the backup', 'Removing …']}
          kind="danger"
          onClose={() => setOpened(undefined)}
          onConfirm={async () => {
            await call('DELETE', `/v1/backups/${opened.backup.id}`)
            reload()
          }}
        >
          <p>Its files are removed from all backup targets.</p>
        </Confirm>
      )}
      <Card
        title="Backups"
        actions={
          isAdmin && (
            <button
              type="button"
              class="button primary"
              disabled={action.isRunning}
              onClick={() => write('POST', `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}/backups`)}
            >
              Back up now
            </button>
          )
        }
      >
        <p class="dim">
          Schedule: {tenant.backup_schedule === null ? 'none' : <code>{tenant.backup_schedule}</code>} ·{' '}
          {tenant.backups_kept} backups are retained
        </p>
        <PagedTable
          pages={pages}
          what="backups"
          label="Backups"
          rowsOf={({ backups }) => [...backups].reverse()}
          rowKey={(backup) => backup.id}
          columns={[
            { title: 'Created', cell: ({ created }) => <Age at={created} /> },
            {
              title: 'State',
              cell: ({ state, error }) => (
                <>
                  <Badge text={state} /> {error}
                </>
              ),
            },
            { title: 'Trigger', cell: ({ trigger }) => trigger, isMinor: true },
            { title: 'Size', isNumber: true, cell: ({ bytes }) => (bytes === null ? '–' : exactBytes(bytes)) },
            {
              title: 'Verified',
              cell: ({ verified, verify_error: error }) =>
                error === null ? (
                  <Age at={verified} never="not yet" />
                ) : (
                  <>
                    <Badge text="failed" /> {error}
                  </>
                ),
            },
            {
              title: 'Actions',
              cell: (backup) =>
                isAdmin && backup.state === 'complete' ? (
                  <span class="row-actions">
                    <button
                      type="button"
                      class="button small"
                      onClick={() => write('POST', `/v1/backups/${backup.id}/verify`)}
                    >
                      Verify
                    </button>
                    <button type="button" class="button small" onClick={() => setOpened({ is: 'restore', backup })}>
                      Restore
                    </button>
                    <button
                      type="button"
                      class="button small"
                      disabled={isLimitedToTenant}
                      title={
                        isLimitedToTenant
                          ? 'This session is limited to this tenant, so it cannot create another.'
                          : undefined
                      }
                      onClick={() => setOpened({ is: 'copy', backup })}
                    >
                      Restore as new
                    </button>
                    <button type="button" class="button small" onClick={() => setOpened({ is: 'remove', backup })}>
                      Remove
                    </button>
                  </span>
                ) : (
                  <span class="dim">–</span>
                ),
            },
          ]}
          empty={
            <Empty title="There are no backups yet.">Back the tenant up now, or set a schedule in its settings.</Empty>
          }
        />
      </Card>
    </>
  )
}

interface RestoreProps {
  tenant: Tenant
  backup: Backup
  onClose: () => void
}

function RestoreInPlace({ tenant, backup, onDone, onClose }: RestoreProps & { onDone: () => void }) {
  return (
    <Confirm
      title={`Restore ${tenant.name}`}
      submit={['Replace the data', 'Restoring …']}
      kind="danger"
      typed={tenant.name}
      onClose={onClose}
      onConfirm={async () => {
        await call('POST', `/v1/backups/${backup.id}/restore`, { body: { into: 'same' } })
        onDone()
      }}
    >
      <p>
        The backup that was created <Age at={backup.created} /> replaces all rows, files and functions of the tenant.
        What was written since then is lost.
      </p>
    </Confirm>
  )
}

function RestoreAsNew({ tenant, backup, onClose }: RestoreProps) {
  const action = useAction()
  const [name, setName] = useState('')
  const [keys, setKeys] = useState<TenantKeys | undefined>(undefined)
  if (keys !== undefined)
    return <Secrets title={`${name} is being created`} file={`${name}-keys`} secrets={{ ...keys }} onClose={onClose} />
  return (
    <Dialog title="Restore as a new tenant" onClose={onClose}>
      <Form
        action={action}
        submit={['Create the tenant', 'Creating …']}
        fields={['name']}
        onCancel={onClose}
        onSubmit={async () => {
          const { body } = await call<{ keys: TenantKeys }>('POST', `/v1/backups/${backup.id}/restore`, {
            body: { into: { name, plan: tenant.plan } },
          })
          setKeys(body.keys)
        }}
      >
        <TextField
          label="Name of the new tenant"
          value={name}
          onInput={setName}
          isRequired
          hint={`It gets the plan ${tenant.plan}, and the data of ${tenant.name} at the time of the backup.`}
          error={fieldError(action.error, 'name')}
        />
      </Form>
    </Dialog>
  )
}
