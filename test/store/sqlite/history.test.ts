import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asId } from "../../../src/domain/ids.ts";
import { arrangeInput } from "../../../src/store/sqlite/history.ts";
import { encodeMessage } from "../../../src/store/sqlite/wire.ts";
import { toolAnswer, user } from "../requests.ts";

const ids = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { maxLength: 3 });
const message = fc.oneof(
  fc.constantFrom("a", "b", "c", "d", "z").map((id) => toolAnswer(id, "result")),
  fc.constant(user("text")),
);

describe("how an input joins a history", () => {
  test("every open call gets exactly one result, before anything else is said", () => {
    fc.assert(
      fc.property(ids, fc.array(message, { maxLength: 6 }), (open, input) => {
        const encoded = input.map((one, index) => encodeMessage(asId(`m${index}`), one));
        const { unanswered, messages } = arrangeInput(open, encoded);
        const answered = messages.flatMap(({ answers }) => (answers === null ? [] : [answers]));
        expect([...unanswered, ...answered].toSorted()).toEqual(open.toSorted());
        const firstText = messages.findIndex(({ answers }) => answers === null);
        expect(firstText === -1 ? answered.length : firstText).toBe(answered.length);
        const texts = (list: typeof messages) =>
          list.filter(({ answers }) => answers === null).map(({ id }) => id);
        expect(texts(messages)).toEqual(texts(encoded));
      }),
    );
  });
});
