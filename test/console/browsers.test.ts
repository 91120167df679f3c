// Short names of browsers from their user agents. An unknown one is shown as it is.
import t from 'tap'
import { browserName } from '../../console/src/format/browsers.ts'

const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0'

t.test('Browsers are named with their version and their system', (t) => {
  const names = {
    [`Mozilla/5.0 (X11; Linux x86_64) ${chrome} Safari/537.36`]: 'Chrome 140 on Linux',
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36 Edg/140.0.0.0`]: 'Edge 140 on Windows',
    [`Mozilla/5.0 (Linux; Android 10; K) ${chrome} Mobile Safari/537.36`]: 'Chrome 140 on Android',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0': 'Firefox 140 on Linux',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15':
      'Safari 18 on macOS',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile/15E148 Safari/604.1':
      'Safari 18 on iOS',
    'curl/8.14.1': 'curl/8.14.1',
    '<script>': '<script>',
    '': '',
  }
  for (const [agent, name] of Object.entries(names)) t.equal(browserName(agent), name)
  t.end()
})
