/** Headers whose values are credentials, such as `Authorization`: they are written and never read back, and sealed where they are stored. */

/** One operation on a header; `value` is empty for `delete`. */
interface Operation {
    readonly op: 'set' | 'add' | 'delete';
    readonly name: string;
    readonly value: string;
}

/** An operation whose value may be missing: as it is shown, or was sent. */
interface Shown extends Omit<Operation, 'value'> {
    readonly value?: string;
}

/** Seals texts under a label. */
interface Sealer {
    seal(label: string, plain: string): string;
    open(label: string, sealed: string): string;
}

interface Holder {
    readonly headers: { readonly request: readonly Operation[] };
}

const label = 'host headers';
const names = /authorization|cookie|token|secret|password|api-?key|auth-key|credential/i;

/** Whether the value of a header of that name is a credential. */
export function isSecretHeader(name: string): boolean {
    return names.test(name);
}

/** Whether an operation has a value that is not shown. */
export function hidesValue({ op, name }: Pick<Operation, 'op' | 'name'>): boolean {
    return op !== 'delete' && isSecretHeader(name);
}

/** Operations as they are shown: without the values that are credentials. */
export function withoutValues(operations: readonly Operation[]): Shown[] {
    return operations.map((operation) =>
        hidesValue(operation) ? { op: operation.op, name: operation.name } : operation
    );
}

/**
 * Gives operations that came without a value the one that is known for them: of the same header and kind, and the first for the first.
 *
 * @param known - by {@link keysOf}
 */
export function withValues<T extends Shown>(
    operations: readonly T[],
    known: ReadonlyMap<string, string>
): T[] {
    const keys = keysOf(operations);
    return operations.map((operation, at) => {
        const value = known.get(keys[at] ?? '');
        return hidesValue(operation) && (operation.value ?? '') === '' && value !== undefined
            ? { ...operation, value }
            : operation;
    });
}

/** The values that are not shown, by {@link keysOf}. */
export function valuesOf(operations: readonly Shown[]): ReadonlyMap<string, string> {
    const keys = keysOf(operations);
    return new Map(
        operations.flatMap((operation, at) =>
            hidesValue(operation) && operation.value !== undefined ? [[keys[at] ?? '', operation.value]] : []
        )
    );
}

/** A key for each operation, by which it is found again: `set authorization 1`. */
export function keysOf(operations: readonly Pick<Operation, 'op' | 'name'>[]): readonly string[] {
    const counts = new Map<string, number>();
    return operations.map(({ op, name }) => {
        const key = `${op} ${name.toLowerCase()}`;
        const count = (counts.get(key) ?? 0) + 1;
        counts.set(key, count);
        return `${key} ${count}`;
    });
}

/** A copy for the database, in which the values that are credentials are sealed. */
export function sealHeaders<T extends Holder>(holder: T, sealer: Pick<Sealer, 'seal'>): T {
    return changed(holder, ({ value, ...operation }) => ({
        ...operation,
        sealed: sealer.seal(label, value)
    }));
}

/** The reverse of {@link sealHeaders}. @throws Error when a value was sealed under another key */
export function openHeaders<T extends Holder>(holder: T, sealer: Pick<Sealer, 'open'>): T {
    return changed(holder, (operation) => {
        const { sealed, ...rest } = operation as Operation & { readonly sealed?: string };
        return sealed === undefined ? rest : { ...rest, value: sealer.open(label, sealed) };
    });
}

function changed<T extends Holder>(holder: T, change: (operation: Operation) => object): T {
    const { request } = holder.headers;
    return request.some(hidesValue)
        ? {
              ...holder,
              headers: {
                  ...holder.headers,
                  request: request.map((each) => (hidesValue(each) ? change(each) : each))
              }
          }
        : holder;
}
