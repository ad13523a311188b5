/** One of several options: texts by value. */
export function Choice(props: {
  label: string;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}) {
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {Object.entries(props.options).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What is on or off. */
export function Check(props: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      {props.label}
    </label>
  );
}

/** A text to search for, which the address keeps while somebody types. */
export function Search(props: {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string, replace: boolean) => void;
}) {
  return (
    <label>
      {props.label}
      <input
        type="search"
        value={props.value}
        placeholder={props.placeholder}
        onInput={(event) => props.onChange(event.currentTarget.value, true)}
      />
    </label>
  );
}
