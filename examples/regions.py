"""Where do the slots of these functions go?"""

import topdown


@topdown.measured("count")
def count(until):
    number = 0
    while number < until:
        number += 1


with topdown.region("solve"):
    total = sum(range(1000000))
    for until in range(0, 10000, 1000):
        count(until)

print(topdown.figures())
