// Chooses the screen of an address.
import type { Route } from '../router.ts'
import { linkTo } from '../router.ts'
import { reasonAgainst, useSession } from '../session.ts'
import { accessOf } from './access.ts'
import { Empty } from '../parts/feedback.tsx'
import { ScreenTitle } from '../parts/basics.tsx'
import { AuditScreen } from './audit.tsx'
import { FleetScreen } from './fleet.tsx'
import { KeysScreen } from './keys.tsx'
import { PlansScreen } from './plans.tsx'
import { RegionsScreen } from './regions.tsx'
import { RolloutsScreen } from './rollouts.tsx'
import { SessionsScreen } from './sessions.tsx'
import { UsageScreen } from './usage.tsx'
import { WebhooksScreen } from './webhooks.tsx'
import { TenantScreen } from '../tenant/tenant.tsx'

/** The screen of the current address. */
export function Screen({ route }: { route: Route }) {
  const [section = 'fleet', subject, tab] = route.path
  const reason = reasonAgainst(useSession(), accessOf(section))
  if (reason !== undefined)
    return (
      <>
        <ScreenTitle title="Not available" />
        <Empty title="This session may not open this screen.">{reason}</Empty>
      </>
    )
  switch (section) {
    case 'fleet':
      return <FleetScreen query={route.query} />
    case 'tenants':
      return subject === undefined ? (
        <FleetScreen query={route.query} />
      ) : (
        <TenantScreen id={subject} tab={tab ?? 'overview'} />
      )
    case 'usage':
      return <UsageScreen />
    case 'plans':
      return <PlansScreen />
    case 'regions':
      return <RegionsScreen />
    case 'rollouts':
      return <RolloutsScreen />
    case 'webhooks':
      return <WebhooksScreen selected={subject} />
    case 'keys':
      return <KeysScreen />
    case 'sessions':
      return <SessionsScreen />
    case 'audit':
      return <AuditScreen />
    default:
      return (
        <>
          <ScreenTitle title="Not found" />
          <Empty title="The console has no such screen.">
            <a href={linkTo(['fleet'])}>Open the fleet</a>
          </Empty>
        </>
      )
  }
}
