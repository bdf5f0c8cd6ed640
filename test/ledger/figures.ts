import type { AdmissionRecord, EndingRecord } from '../../src/ledger/ledger.js'

/** A usage record's first half, as long as real ones are. */
export function admissionRecord(fields: Partial<AdmissionRecord> = {}): AdmissionRecord {
  return {
    key: 'app-a',
    account: 'acme',
    plan: 'free',
    surface: 'chat-completions',
    model: 'openai/gpt-4o-mini',
    provider: 'openai',
    stream: true,
    client_request_id: null,
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    held_tokens: 1000,
    held_rial: 600n,
    price: '{"input":157500,"cached_input":78750,"output":630000}',
    ...fields,
  }
}

/** A usage record's second half. */
export function endingRecord(fields: Partial<EndingRecord> = {}): EndingRecord {
  return {
    ended_at: 1_764_000_000_520,
    ended_by: 'provider',
    usage_source: 'provider',
    input_tokens: 120,
    cached_input_tokens: 20,
    output_tokens: 340,
    reasoning_tokens: 40,
    cost_rial: 450n,
    overrun_rial: 0n,
    status: 200,
    code: null,
    provider: 'openai',
    price: '{"input":157500,"cached_input":78750,"output":630000}',
    upstream_request_id: 'req_4c8a1c5e0b9f4a7d',
    attempts: '[{"target":"openai/gpt-4o-mini","result":"ok","ms":512}]',
    ttft_ms: 210,
    duration_ms: 520,
    ...fields,
  }
}
