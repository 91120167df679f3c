// The frame of a console: the navigation, and the current screen, which gets the focus when it opens.
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

interface ShellProps {
  /** The text that is different for each screen. */
  screen: string
  navigation: ComponentChildren
  children: ComponentChildren
}

/** The navigation and a screen. */
export function Shell({ screen, navigation, children }: ShellProps) {
  useEffect(() => {
    scrollTo(0, 0)
    document.querySelector<HTMLElement>('#screen-title')?.focus({ preventScroll: true })
  }, [screen])
  return (
    <div class="shell">
      <a
        class="skip"
        href="#screen"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>('#screen')?.focus()
        }}
      >
        Skip to the content
      </a>
      {navigation}
      <main id="screen" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}
