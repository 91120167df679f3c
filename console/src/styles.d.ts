// Style sheets that the bundler collects.
declare module '*.css'
