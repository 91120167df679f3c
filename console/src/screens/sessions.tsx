// Console sessions: which browsers are signed in, and ending them.
import { call } from '../api/client.ts'
import type { Paged, PlatformKey, Session } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { browserName } from '../format/browsers.ts'
import { useNow } from '../format/times.ts'
import { Age, Badge, Card, ScreenTitle } from '../parts/basics.tsx'
import { Empty, ErrorBox } from '../parts/feedback.tsx'
import { useAction } from '../parts/form.tsx'
import { PagedTable, usePages } from '../parts/table.tsx'
import { useSession } from '../session.ts'

/** The screen of console sessions. */
export function SessionsScreen() {
  const own = useSession()
  const now = useNow()
  const keys = useLoad<{ keys: PlatformKey[] }>('/v1/keys')
  const pages = usePages<Paged & { console_sessions: Session[] }>('/v1/console-sessions')
  const action = useAction()
  const isLive = ({ revoked_at: revoked, idle_expires_at: idle }: Session) => revoked === null && Date.parse(idle) > now
  const nameOf = (id: string) => keys.data?.keys.find((key) => key.id === id)?.name ?? id
  return (
    <>
      <ScreenTitle
        title="Console sessions"
        note="Browsers that are signed in. A session ends 2 hours after its last use, and after 12 hours"
      />
      {action.error !== undefined && <ErrorBox error={action.error} />}
      <Card>
        <PagedTable
          pages={pages}
          what="sessions"
          label="Console sessions"
          rowsOf={({ console_sessions: rows }) => rows}
          rowKey={({ id }) => id}
          columns={[
            {
              title: 'State',
              cell: (session) =>
                session.id === own.id ? (
                  <Badge text="this session" kind="info" />
                ) : isLive(session) ? (
                  <Badge text="valid" kind="good" />
                ) : (
                  <Badge text="ended" />
                ),
            },
            { title: 'Key', cell: ({ platform_key_id: id }) => nameOf(id) },
            { title: 'Address', cell: ({ address }) => <code>{address}</code> },
            {
              title: 'Browser',
              cell: ({ user_agent: agent }) => (
                <span class="clip" title={agent}>
                  {browserName(agent)}
                </span>
              ),
            },
            { title: 'Signed in', cell: ({ created_at: at }) => <Age at={at} /> },
            { title: 'Last use', cell: ({ seen_at: at }) => <Age at={at} /> },
            {
              title: 'Action',
              cell: (session) =>
                isLive(session) && session.id !== own.id ? (
                  <button
                    type="button"
                    class="button small"
                    disabled={action.isRunning}
                    onClick={() =>
                      action.run(async () => {
                        await call('DELETE', `/v1/console-sessions/${session.id}`)
                        pages.load.reload()
                      })
                    }
                  >
                    End
                  </button>
                ) : null,
            },
          ]}
          empty={<Empty title="There are no sessions." />}
        />
      </Card>
    </>
  )
}
