// The developers' console: signs in with the secret key, then shows the navigation and the screen of the current address.
import { call } from '../api/client.ts'
import { Empty } from '../parts/feedback.tsx'
import { ScreenTitle } from '../parts/basics.tsx'
import { SessionGate } from '../parts/session-gate.tsx'
import { Shell } from '../parts/shell.tsx'
import { SideNavigation, type NavigationGroup } from '../parts/side-navigation.tsx'
import { SignInForm } from '../parts/sign-in-form.tsx'
import { linkTo, useRoute, type Route } from '../router.ts'
import { EventsScreen } from './events/events.tsx'
import { BucketsScreen } from './files/buckets.tsx'
import { FolderScreen } from './files/folder.tsx'
import { FunctionScreen } from './functions/function.tsx'
import { FunctionsScreen } from './functions/functions.tsx'
import { KeysScreen } from './keys/keys.tsx'
import { PoliciesScreen } from './policies/policies.tsx'
import { RealtimeScreen } from './realtime/realtime.tsx'
import { SchemasScreen } from './schemas/schemas.tsx'
import { UsageOfMonth } from '../tenant/usage.tsx'
import { SchemaScreen } from './schemas/schema.tsx'
import { SessionContext, useSession, type DeveloperSession } from './session.ts'
import { SqlScreen } from './sql/sql.tsx'
import { RowsScreen } from './tables/rows.tsx'
import { TablesScreen } from './tables/tables.tsx'

const path = '/console/v1/session'

const groups: readonly NavigationGroup[] = [
  {
    title: 'Data',
    items: [
      { path: 'tables', title: 'Tables' },
      { path: 'schemas', title: 'Schemas' },
      { path: 'sql', title: 'SQL' },
      { path: 'policies', title: 'Policies' },
      { path: 'files', title: 'Files' },
    ],
  },
  {
    title: 'Code and messages',
    items: [
      { path: 'functions', title: 'Functions' },
      { path: 'events', title: 'Events' },
      { path: 'realtime', title: 'Realtime' },
    ],
  },
  {
    title: 'Tenant',
    items: [
      { path: 'usage', title: 'Usage' },
      { path: 'keys', title: 'Keys' },
    ],
  },
]

/** The whole console. */
export function App() {
  return (
    <SessionGate<DeveloperSession>
      path={path}
      isSignedOut={({ status }) => status === 401}
      signIn={(hasEnded, onSignIn) => (
        <SignInForm
          title="Sign in to your tenant"
          label="Secret key"
          hint={
            <>
              It begins with <code>tn_secret_</code>. Your operator gave it to you with the tenant&#39;s URL.
            </>
          }
          hasEnded={hasEnded}
          exchange={async (key) => {
            const { body } = await call<DeveloperSession>('POST', path, { body: { service_key: key } })
            return () => onSignIn(body)
          }}
        />
      )}
    >
      {(session, onSignOut) => (
        <SessionContext.Provider value={session}>
          <Console onSignOut={onSignOut} />
        </SessionContext.Provider>
      )}
    </SessionGate>
  )
}

function Console({ onSignOut }: { onSignOut: () => void }) {
  const route = useRoute()
  const { tenant_name: name } = useSession()
  const [section = 'tables'] = route.path
  const screen = route.path.join('/')
  return (
    <Shell
      screen={screen}
      navigation={
        <SideNavigation
          home="tables"
          groups={groups}
          current={section}
          account={
            <>
              Tenant <strong>{name}</strong>
              <br />
              <span class="dim">service role</span>
            </>
          }
          onSignOut={onSignOut}
        />
      }
    >
      <Screen key={screen} route={route} />
    </Shell>
  )
}

function Screen({ route: { path: parts, query } }: { route: Route }) {
  const [section = 'tables', subject] = parts
  switch (section) {
    case 'tables':
      return subject === undefined ? <TablesScreen /> : <RowsScreen name={subject} query={query} />
    case 'schemas':
      return subject === undefined ? <SchemasScreen /> : <SchemaScreen name={subject} />
    case 'sql':
      return <SqlScreen />
    case 'files':
      return <FilesScreen parts={parts.slice(1)} />
    case 'policies':
      return <PoliciesScreen />
    case 'functions':
      return subject === undefined ? <FunctionsScreen /> : <FunctionScreen name={subject} />
    case 'events':
      return <EventsScreen />
    case 'keys':
      return <KeysScreen />
    case 'realtime':
      return <RealtimeScreen />
    case 'usage':
      return (
        <>
          <ScreenTitle title="Usage" note="What the operator counts and bills" />
          <UsageOfMonth base="/usage/v1" />
        </>
      )
    default:
      return (
        <>
          <ScreenTitle title="Not found" />
          <Empty title="The console has no such screen.">
            <a href={linkTo(['tables'])}>Open the tables</a>
          </Empty>
        </>
      )
  }
}

/** A folder of a bucket, whose path is the rest of the address; all buckets without one. */
function FilesScreen({ parts: [bucket, ...folders] }: { parts: readonly string[] }) {
  if (bucket === undefined) return <BucketsScreen />
  return <FolderScreen bucket={bucket} prefix={folders.map((name) => `${name}/`).join('')} />
}
