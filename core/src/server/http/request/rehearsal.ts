/**
 * A call that is tried and not made. It takes the way of the real call, through identity, access and schemas, and ends where the change would
 * become durable: the transaction that asks to be put on record is rolled back instead.
 */

/** Thrown in place of a commit. */
export class Rehearsed extends Error {
    /** What the route would have answered. */
    readonly reply: unknown;

    constructor(reply: unknown) {
        super('The call was only tried: its change is rolled back');
        this.reply = reply;
    }
}

/** What came of a rehearsal. */
export class Rehearsal {
    /** The route's own checks ran, not only those of access and shape. */
    ran = false;
    /** What the route would have answered; null where it did not run. */
    reply: unknown = null;
}
