// The navigation of a console: its screens in groups, the theme, and the sign-out.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { linkTo } from '../router.ts'
import { chooseTheme, chosenTheme, themes, type Theme } from '../theme.ts'
import { Logo } from './logo.tsx'

/** Screens with a common title. */
export interface NavigationGroup {
  title: string
  items: readonly { path: string; title: string }[]
}

interface SideNavigationProps {
  /** The path of the first screen. */
  home: string
  groups: readonly NavigationGroup[]
  /** The path of the current screen. */
  current: string
  /** Elements above the choice of the theme. */
  status?: ComponentChildren
  /** The account of the session. */
  account: ComponentChildren
  onSignOut: () => void
}

/** The navigation at the side, or at the top of narrow screens. */
export function SideNavigation({ home, groups, current, status, account, onSignOut }: SideNavigationProps) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [current])
  return (
    <header class={`navigation ${isOpen ? 'is-open' : ''}`}>
      <div class="brand">
        <a href={linkTo([home])} class="brand-name">
          <Logo size={22} />
          Tenantry
        </a>
        <button
          type="button"
          class="button small menu"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </div>
      <div id="menu" class="menu-content">
        <nav aria-label="Screens">
          {groups.map(({ title, items }) => (
            <div key={title} class="nav-group">
              <p class="nav-title">{title}</p>
              <ul>
                {items.map(({ path, title: text }) => (
                  <li key={path}>
                    <a href={linkTo([path])} aria-current={path === current ? 'page' : undefined}>
                      {text}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div class="nav-foot">
          {status}
          <ThemeChoice />
          <p class="nav-session">{account}</p>
          <button type="button" class="button small" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </div>
    </header>
  )
}

function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme)
  const choose = (next: Theme) => {
    chooseTheme(next)
    setTheme(next)
  }
  return (
    <fieldset class="segmented">
      <legend class="hidden-text">Theme</legend>
      {themes.map((one) => (
        <label key={one}>
          <input type="radio" name="theme" checked={one === theme} onInput={() => choose(one)} />
          <span>{one}</span>
        </label>
      ))}
    </fieldset>
  )
}
