import { useEffect, useState } from 'preact/hooks';

/** A value that lies outside of the components and that they follow. */
export class Store<Value> {
    #value: Value;
    readonly #listeners = new Set<(value: Value) => void>();

    constructor(value: Value) {
        this.#value = value;
    }

    /** The present value. */
    get value(): Value {
        return this.#value;
    }

    set(value: Value): void {
        this.#value = value;
        this.#listeners.forEach((listener) => listener(value));
    }

    listen(listener: (value: Value) => void): () => void {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }
}

/** Follows a store in a component. */
export function useStore<Value>(store: Store<Value>): Value {
    const [value, setValue] = useState(store.value);
    useEffect(() => {
        setValue(() => store.value);
        return store.listen((next) => setValue(() => next));
    }, [store]);
    return value;
}
