// The theme: the system's, light or dark. The choice is the only thing that the console stores in the browser.

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const storageKey = 'tenantry-theme'

/** Returns the stored choice; the system's theme without one, or where storage is not allowed. */
export function chosenTheme(): Theme {
  try {
    const stored = localStorage.getItem(storageKey)
    return themes.find((theme) => theme === stored) ?? 'system'
  } catch {
    return 'system'
  }
}

/** Stores a choice and applies it. */
export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(storageKey, theme)
  } catch {
    // The choice then lasts until the page is closed.
  }
  applyTheme(theme)
}

/** Applies a theme to the page. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}
