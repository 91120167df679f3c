// The entry of the developers' console, which a tenant's URL serves at /console.
import { render } from 'preact'
import { setApi } from '../api/client.ts'
import 'uplot/dist/uPlot.min.css'
import '../styles/base.css'
import '../styles/layout.css'
import '../styles/forms.css'
import '../styles/tables.css'
import '../styles/parts.css'
import '../styles/developer.css'
import { applyTheme } from '../theme.ts'
import { App } from './app.tsx'

applyTheme()
setApi({ base: location.pathname.replace(/\/console\/?$/, ''), name: 'tenant', protectsReads: true })
const root = document.querySelector('#app')
if (root === null) throw new Error('The page has no element #app.')
root.replaceChildren()
render(<App />, root)
