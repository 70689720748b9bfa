/**
 * What one child of the tree provides to those started after it. It is there only while that child lives; the tree
 * restarts everyone to the right of a child that crashed, so nobody keeps a part of a former life.
 */
export class Part<T> {
  readonly #name: string;
  #value: { readonly is: T } | null = null;

  constructor(name: string) {
    this.#name = name;
  }

  /** Throws where the providing child does not live: somebody relies on a child to its right. */
  get(): T {
    if (this.#value === null) throw new Error(`${this.#name} is not there`);
    return this.#value.is;
  }

  /** Null where the providing child does not live. */
  peek(): T | null {
    return this.#value?.is ?? null;
  }

  /** Provides a value until the returned object is disposed. */
  provide(value: T): Disposable {
    const provided = { is: value };
    this.#value = provided;
    return {
      [Symbol.dispose]: () => {
        if (this.#value === provided) this.#value = null;
      },
    };
  }
}
