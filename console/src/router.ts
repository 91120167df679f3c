// The address of a screen is in the URL's fragment, so that the server needs no routes for screens.
import { useEffect, useState } from 'preact/hooks'

/** A screen's path, such as `['tenants', 't_…', 'usage']`, and its parameters. */
export interface Route {
  path: string[]
  query: URLSearchParams
}

function parse(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2)
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decoded),
    query: new URLSearchParams(query),
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Returns the current route, and renders again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(parse)
  useEffect(() => {
    const update = () => setRoute(parse())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  return route
}

/** Returns the link to a screen. */
export function linkTo(path: readonly string[], query: Record<string, string> = {}): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

/** Opens a screen. With `replace`, the browser's history has no entry for the current one. */
export function open(link: string, { replace = false } = {}): void {
  if (!replace) {
    location.hash = link
    return
  }
  history.replaceState(undefined, '', link)
  dispatchEvent(new HashChangeEvent('hashchange'))
}
