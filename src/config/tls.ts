import { createPrivateKey, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import type { PemFile, Tls } from './config.js'
import type { Draft } from './draft.js'
import type { Findings } from './findings.js'
import type { Path } from './problems.js'
import { openToAll, reason } from './secrets.js'

/** Certificate and key, and whether they belong together: files that are swapped one after the other do not for a moment. */
export function readTls(findings: Findings, draft: Draft['tls']): Tls | null {
  if (draft?.cert === undefined || draft.key === undefined) return null
  const cert = readPem(findings, draft.cert, ['tls', 'cert'])
  const key = readPem(findings, draft.key, ['tls', 'key'])
  const client_ca = draft.client_ca === undefined ? null : readAuthorities(findings, draft.client_ca, ['tls', 'client_ca'])
  if (cert === null || key === null) return null
  const certificate = parsed(findings, ['tls', 'cert'], 'is no certificate in PEM', () => new X509Certificate(cert.pem))
  const privateKey = parsed(findings, ['tls', 'key'], 'is no private key in PEM without a passphrase', () => createPrivateKey(key.pem))
  if (certificate !== null && privateKey !== null && !certificate.checkPrivateKey(privateKey)) {
    findings.wrong(['tls', 'key'], 'is not the key of the certificate')
  }
  const open = openToAll(key.file)
  if (open !== null) findings.warn(['tls', 'key'], open)
  return { cert: cert.file, key: key.file, cert_pem: cert.pem, key_pem: key.pem, client_ca }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** A file of one certificate or more that others are held against. `null`: it is among the problems. */
export function readAuthorities(findings: Findings, name: string, path: Path): PemFile | null {
  const file = readPem(findings, name, path)
  if (file === null) return null
  const certificates = file.pem.match(CERTIFICATE) ?? []
  // What OpenSSL can not read it would leave out in silence.
  const read = parsed(findings, path, 'holds what is no certificate in PEM', () => certificates.map(one => new X509Certificate(one)))
  if (read?.length === 0) findings.wrong(path, 'holds no certificate in PEM')
  return file
}

function readPem(findings: Findings, name: string, path: Path): PemFile | null {
  const { folder, readFile } = findings.source
  const file = resolve(folder, name)
  findings.files.push(file)
  try {
    return { file, pem: readFile(file) }
  } catch (error) {
    findings.wrong(path, `cannot read ${file}: ${reason(error)}`)
    return null
  }
}

function parsed<T>(findings: Findings, path: Path, message: string, parse: () => T): T | null {
  try {
    return parse()
  } catch {
    findings.wrong(path, message)
    return null
  }
}
