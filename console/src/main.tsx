// The entry of the console's bundle.
import { render } from 'preact'
import { App } from './app.tsx'
import 'uplot/dist/uPlot.min.css'
import './styles/base.css'
import './styles/layout.css'
import './styles/forms.css'
import './styles/tables.css'
import './styles/parts.css'
import { applyTheme } from './theme.ts'

applyTheme()
const root = document.querySelector('#app')
if (root === null) throw new Error('The page has no element #app.')
root.replaceChildren()
render(<App />, root)
