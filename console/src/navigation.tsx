// The operators' navigation: the screens that the session's scope may read, and whether changes are followed live.
import { useEffect, useState } from 'preact/hooks'
import { onLiveState } from './api/changes.ts'
import { SideNavigation, type NavigationGroup } from './parts/side-navigation.tsx'
import { accessOf } from './screens/access.ts'
import { limitOf, limitText, reasonAgainst, useSession } from './session.ts'

/** The screens, in groups. */
const groups: readonly NavigationGroup[] = [
  {
    title: 'Tenants',
    items: [
      { path: 'fleet', title: 'Fleet' },
      { path: 'usage', title: 'Usage' },
      { path: 'plans', title: 'Plans and prices' },
    ],
  },
  {
    title: 'Installation',
    items: [
      { path: 'regions', title: 'Regions and hosts' },
      { path: 'rollouts', title: 'Rollouts' },
      { path: 'webhooks', title: 'Webhooks' },
    ],
  },
  {
    title: 'Access',
    items: [
      { path: 'keys', title: 'Keys' },
      { path: 'sessions', title: 'Console sessions' },
      { path: 'audit', title: 'Audit log' },
    ],
  },
]

/** The operators' navigation. */
export function Navigation({ section, onSignOut }: { section: string; onSignOut: () => void }) {
  const session = useSession()
  const { scope, key_name: keyName } = session
  const isLimited = limitOf(session) !== 'nothing'
  const allowed = groups
    .map(({ title, items }) => ({
      title,
      items: items.filter(({ path }) => reasonAgainst(session, accessOf(path)) === undefined),
    }))
    .filter(({ items }) => items.length > 0)
  return (
    <SideNavigation
      home="fleet"
      groups={allowed}
      current={section === 'tenants' ? 'fleet' : section}
      status={isLimited ? <p class="live">Not live: limited keys cannot follow changes</p> : <LiveState />}
      account={
        <>
          Signed in with <strong>{keyName}</strong>
          <br />
          <span class="dim">
            scope {scope}
            {isLimited && <>, limited to {limitText(session)}</>}
          </span>
        </>
      }
      onSignOut={onSignOut}
    />
  )
}

function LiveState() {
  const [isLive, setLive] = useState(false)
  useEffect(() => onLiveState(setLive), [])
  return (
    <p class={`live ${isLive ? 'live-on' : ''}`} role="status">
      <span class="live-dot" aria-hidden="true" /> {isLive ? 'Live' : 'Connecting …'}
    </p>
  )
}
