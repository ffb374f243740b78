/**
 * Which flow a datagram belongs to: client address (and, on a wildcard listener, the local address) to slot. A flow that
 * lingers has a slot and no entry: the next datagram of its client finds nothing.
 *
 * One typed array of 64-byte records and one of index buckets, both laid out before the first datagram: no insert ever waits
 * for a table to grow, and nothing is allocated per flow (doc/decisions/0003-flow-table.md has the measurements). The last
 * slot freed is the next one used.
 */
import { ipv4, ipv6, type Address } from './address.ts';
import { VALIDATED } from './amplification.ts';
import { assert } from './assert.ts';
import type { LingerEnd } from './flow.ts';
import { keyedHash, type TableSeed } from './keyed-hash.ts';
import { SlotIndex } from './slot-index.ts';
import { UsedPart } from './used-part.ts';

const NONE = -1;

/** Words of a record: one cache line. */
const STRIDE = 16;
/** The first word of the address; an IPv4 key has no others. */
const A = 0;
/** Port in the low half; the family above it, never 0 for a key. */
const ENDPOINT = 1;
const B = 2;
const C = 3;
const D = 4;
const SCOPE = 5;
/** Words of a client key, of which IPv4 uses the first two. */
const KEY_WORDS = 6;
const KEY_WORDS_IPV4 = 2;
const HASH = 6;
const STATE = 7;
const REQUESTS = 8;
const RESPONSES = 9;
const BACKEND = 10;
const CONFIG = 11;
/** Reply bytes that are left to a client which spoke once; see amplification.ts. */
const CREDIT = 12;
/** What ends a flow that lingers, as a place in `ENDS`. */
const END = 13;
/** A double over two words: in doubles, a record is half as long. */
const SERIAL = 14 / 2;
/** While a slot is free: the slot freed before it. */
const FREE_NEXT = REQUESTS;

const LOCAL_STRIDE = 5;

const FREE = 0;
const ESTABLISHED = 1;
const HEADER_DUE = 2;
const LINGERING = 4;

const ENDS: readonly LingerEnd[] = ['Idle', 'ResponsesReached', 'RequestsReached'];

const U32_MAX = 0xffffffff;

export class FlowTable {
  private readonly seed: TableSeed;
  private readonly byLocal: boolean;
  private readonly scratch = new Int32Array(KEY_WORDS + LOCAL_STRIDE);
  private records: Int32Array;
  private doubles: Float64Array;
  private locals: Int32Array;
  private recordsUsed: UsedPart;
  private localsUsed: UsedPart;
  private index: SlotIndex;
  private firstFree = NONE;
  /** Slots below this were used before; the rest has never been touched. */
  private used = 0;
  private live = 0;
  private serials: number;
  private slots: number;

  /** Room for `capacity` flows, keyed by the local address too if `byLocal`. The first has the serial number `before` + 1. */
  constructor(capacity: number, seed: TableSeed, byLocal: boolean, before = 0) {
    this.seed = seed;
    this.byLocal = byLocal;
    this.serials = before;
    this.slots = capacity;
    this.records = new Int32Array(capacity * STRIDE);
    this.doubles = new Float64Array(this.records.buffer);
    this.locals = new Int32Array(byLocal ? capacity * LOCAL_STRIDE : 0);
    this.recordsUsed = new UsedPart(this.records, STRIDE);
    this.localsUsed = new UsedPart(this.locals, LOCAL_STRIDE);
    this.index = new SlotIndex(capacity);
  }

  get count(): number {
    return this.live;
  }

  get capacity(): number {
    return this.slots;
  }

  /** Slots that were ever used: every live slot is below. */
  get highWater(): number {
    return this.used;
  }

  /** Bytes of all arrays. */
  get byteLength(): number {
    return this.records.byteLength + this.locals.byteLength + this.index.entries.byteLength;
  }

  /** Room for more flows. Slots keep their numbers. Takes time in proportion to the flows: not for the datagram path. */
  grow(capacity: number): void {
    assert(capacity >= this.slots, 'a table never shrinks');
    this.slots = capacity;
    this.records = copyInto(new Int32Array(capacity * STRIDE), this.records);
    this.doubles = new Float64Array(this.records.buffer);
    if (this.byLocal) {
      this.locals = copyInto(new Int32Array(capacity * LOCAL_STRIDE), this.locals);
    }
    this.recordsUsed = new UsedPart(this.records, STRIDE);
    this.localsUsed = new UsedPart(this.locals, LOCAL_STRIDE);
    this.index = new SlotIndex(capacity);
    for (let slot = 0; slot < this.used; slot += 1) {
      this.recordsUsed.mark(slot);
      if (this.byLocal) this.localsUsed.mark(slot);
      if (!this.isLive(slot) || this.isLingering(slot)) continue;
      this.index.enter(slot, this.records[slot * STRIDE + HASH]!);
    }
  }

  /** The hash that `find` and `insert` take. */
  hashOf(client: Address, local: Address | undefined): number {
    this.fillKey(client, local);
    return this.hashOfScratch();
  }

  /** The slot of the established flow with this key, or undefined. `hash` comes from `hashOf` with the same arguments. */
  find(hash: number, client: Address, local: Address | undefined): number | undefined {
    const { entries, mask } = this.index;
    for (let bucket = hash & mask; ; bucket = (bucket + 1) & mask) {
      const entry = entries[2 * bucket]!;
      if (entry === 0) return undefined;
      if (entries[2 * bucket + 1] === hash && this.matches(entry - 1, client, local)) {
        return entry - 1;
      }
    }
  }

  /** A new flow, with the next serial number, under a key that leads to none. There must be room. */
  insert(hash: number, client: Address, local: Address | undefined): number {
    assert(this.live < this.slots, 'the table has room: admission checked the cap');
    const slot = this.takeSlot();
    const at = slot * STRIDE;
    this.fillKey(client, local);
    for (let word = 0; word < KEY_WORDS; word += 1) this.records[at + word] = this.scratch[word]!;
    if (this.byLocal) this.locals.set(this.scratch.subarray(KEY_WORDS), slot * LOCAL_STRIDE);
    this.records[at + HASH] = hash;
    this.records[at + STATE] = ESTABLISHED;
    this.records[at + REQUESTS] = 0;
    this.records[at + RESPONSES] = 0;
    this.records[at + CREDIT] = VALIDATED;
    this.records[at + END] = 0;
    this.live += 1;
    this.serials += 1;
    this.doubles[slot * (STRIDE / 2) + SERIAL] = this.serials;
    this.index.enter(slot, hash);
    return slot;
  }

  /** Takes the key of a live flow out of the index, if it is there, and notes what will end the flow. */
  linger(slot: number, end: LingerEnd): void {
    const at = slot * STRIDE;
    if (!this.isLingering(slot)) this.index.leave(slot, this.records[at + HASH]!);
    this.records[at + STATE] = this.records[at + STATE]! | LINGERING;
    this.records[at + END] = ENDS.indexOf(end);
  }

  /** Whether this live flow is no longer found by its key. */
  isLingering(slot: number): boolean {
    return (this.records[slot * STRIDE + STATE]! & LINGERING) !== 0;
  }

  /** Whether this live flow has all its replies and waits for late ones only. */
  isInGrace(slot: number): boolean {
    return this.records[slot * STRIDE + END] !== 0;
  }

  /** Why this live flow closes at its deadline: it went idle, unless its grace for late replies runs. */
  endOf(slot: number): LingerEnd {
    return ENDS[this.records[slot * STRIDE + END]!]!;
  }

  /** Frees a live slot. */
  remove(slot: number): void {
    assert(this.isLive(slot), 'only a live flow is removed');
    const at = slot * STRIDE;
    if (!this.isLingering(slot)) this.index.leave(slot, this.records[at + HASH]!);
    this.records[at + STATE] = FREE;
    this.records[at + FREE_NEXT] = this.firstFree;
    this.firstFree = slot;
    this.live -= 1;
  }

  /** Whether `slot`, any number at all, is the slot of a live flow. */
  isLive(slot: number): boolean {
    if (!Number.isInteger(slot) || slot < 0 || slot >= this.used) return false;
    return this.records[slot * STRIDE + STATE]! !== FREE;
  }

  /** Number of the flow in this live slot: counted from 1, never given twice. */
  serialOf(slot: number): number {
    return this.doubles[slot * (STRIDE / 2) + SERIAL]!;
  }

  /** Whether the index leads to this live slot, by whatever key. For whole-state checks. */
  isIndexed(slot: number): boolean {
    return this.index.holds(slot, this.records[slot * STRIDE + HASH]!);
  }

  /** Copies the words of a client's key: address a, family and port, address b, c, d, zone. For whole-state checks. */
  readKey(slot: number, into: Int32Array, at: number): void {
    for (let word = 0; word < KEY_WORDS; word += 1) {
      into[at + word] = this.records[slot * STRIDE + word]!;
    }
  }

  /** Where the key in a live slot's record leads. For whole-state checks: it trusts no stored hash. */
  slotByKeyOf(slot: number): number | undefined {
    const { scratch } = this;
    this.readKey(slot, scratch, 0);
    for (let word = 0; this.byLocal && word < LOCAL_STRIDE; word += 1) {
      scratch[KEY_WORDS + word] = this.locals[slot * LOCAL_STRIDE + word]!;
    }
    const hash = this.hashOfScratch();
    const { entries, mask } = this.index;
    for (let bucket = hash & mask; entries[2 * bucket] !== 0; bucket = (bucket + 1) & mask) {
      const found = entries[2 * bucket]! - 1;
      if (entries[2 * bucket + 1] === hash && this.sharesKey(found, slot)) return found;
    }
    return undefined;
  }

  clientOf(slot: number): Address {
    return this.addressAt(this.records, slot * STRIDE);
  }

  /** The local address in the key of a flow; undefined where none is known. */
  localOf(slot: number): Address | undefined {
    const at = slot * LOCAL_STRIDE;
    if (!this.byLocal || this.locals[at + ENDPOINT] === 0) return undefined;
    return { ...this.addressAt(this.locals, at), scope: 0 };
  }

  setUpstream(slot: number, backend: number, config: number): void {
    this.records[slot * STRIDE + BACKEND] = backend;
    this.records[slot * STRIDE + CONFIG] = config;
  }

  /** Registry number of the backend. */
  backendOf(slot: number): number {
    return this.records[slot * STRIDE + BACKEND]!;
  }

  /** Registry number of the configuration captured at admission. */
  configOf(slot: number): number {
    return this.records[slot * STRIDE + CONFIG]!;
  }

  requestsOf(slot: number): number {
    return this.records[slot * STRIDE + REQUESTS]! >>> 0;
  }

  responsesOf(slot: number): number {
    return this.records[slot * STRIDE + RESPONSES]! >>> 0;
  }

  /** So many client datagrams more, saturating at 2^32 − 1; the new count. */
  countRequest(slot: number, datagrams = 1): number {
    return this.count32(slot * STRIDE + REQUESTS, datagrams);
  }

  countResponse(slot: number, datagrams = 1): number {
    return this.count32(slot * STRIDE + RESPONSES, datagrams);
  }

  creditOf(slot: number): number {
    return this.records[slot * STRIDE + CREDIT]!;
  }

  setCredit(slot: number, credit: number): void {
    this.records[slot * STRIDE + CREDIT] = credit;
  }

  /** Whether the first datagram, which carries the PROXY header, is still to come. */
  headerDue(slot: number): boolean {
    return (this.records[slot * STRIDE + STATE]! & HEADER_DUE) !== 0;
  }

  setHeaderDue(slot: number, due: boolean): void {
    this.records[slot * STRIDE + STATE] = due ? ESTABLISHED | HEADER_DUE : ESTABLISHED;
  }

  private count32(at: number, more: number): number {
    const before = this.records[at]! >>> 0;
    const count = Math.min(before + more, U32_MAX);
    this.records[at] = count;
    return count;
  }

  private addressAt(words: Int32Array, at: number): Address {
    const endpoint = words[at + ENDPOINT]!;
    const port = endpoint & 0xffff;
    if (endpoint >>> 16 === 4) return ipv4(words[at + A]!, port);
    return ipv6(
      [words[at + A]!, words[at + B]!, words[at + C]!, words[at + D]!],
      port,
      words[at + SCOPE],
    );
  }

  private fillKey(client: Address, local: Address | undefined): void {
    const { scratch } = this;
    scratch[A] = client.a;
    scratch[ENDPOINT] = endpointOf(client);
    scratch[B] = client.b;
    scratch[C] = client.c;
    scratch[D] = client.d;
    scratch[SCOPE] = client.scope;
    if (!this.byLocal) return;
    scratch[KEY_WORDS + A] = local?.a ?? 0;
    scratch[KEY_WORDS + B] = local?.b ?? 0;
    scratch[KEY_WORDS + C] = local?.c ?? 0;
    scratch[KEY_WORDS + D] = local?.d ?? 0;
    scratch[KEY_WORDS + ENDPOINT] = local === undefined ? 0 : endpointOf(local);
  }

  private hashOfScratch(): number {
    const isIpv4 = this.scratch[ENDPOINT]! >>> 16 === 4;
    const words = this.byLocal ? KEY_WORDS + LOCAL_STRIDE : isIpv4 ? KEY_WORDS_IPV4 : KEY_WORDS;
    return keyedHash(this.seed, this.scratch, words);
  }

  /** Whether two slots hold one key. For whole-state checks. */
  private sharesKey(one: number, other: number): boolean {
    for (let word = 0; word < KEY_WORDS; word += 1) {
      if (this.records[one * STRIDE + word] !== this.records[other * STRIDE + word]) return false;
    }
    for (let word = 0; this.byLocal && word < LOCAL_STRIDE; word += 1) {
      const at = (slot: number): number | undefined => this.locals[slot * LOCAL_STRIDE + word];
      if (at(one) !== at(other)) return false;
    }
    return true;
  }

  private matches(slot: number, client: Address, local: Address | undefined): boolean {
    const { records } = this;
    const at = slot * STRIDE;
    return (
      records[at + A] === client.a &&
      records[at + ENDPOINT] === endpointOf(client) &&
      records[at + B] === client.b &&
      records[at + C] === client.c &&
      records[at + D] === client.d &&
      records[at + SCOPE] === client.scope &&
      (!this.byLocal || this.matchesLocal(slot, local))
    );
  }

  private matchesLocal(slot: number, local: Address | undefined): boolean {
    const { locals } = this;
    const at = slot * LOCAL_STRIDE;
    if (local === undefined) return locals[at + ENDPOINT] === 0;
    return (
      locals[at + A] === local.a &&
      locals[at + B] === local.b &&
      locals[at + C] === local.c &&
      locals[at + D] === local.d &&
      locals[at + ENDPOINT] === endpointOf(local)
    );
  }

  private takeSlot(): number {
    if (this.firstFree === NONE) {
      this.recordsUsed.mark(this.used);
      if (this.byLocal) this.localsUsed.mark(this.used);
      this.used += 1;
      return this.used - 1;
    }
    const slot = this.firstFree;
    this.firstFree = this.records[slot * STRIDE + FREE_NEXT]!;
    return slot;
  }
}

function endpointOf(address: Address): number {
  return (address.family << 16) | address.port;
}

function copyInto(target: Int32Array<ArrayBuffer>, source: Int32Array): Int32Array<ArrayBuffer> {
  target.set(source);
  return target;
}
