"""Tasks and algorithms that several grids share."""

NAVIGATION = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
VELOCITY = (
    "SafetyAntVelocity-v1",
    "SafetyHalfCheetahVelocity-v1",
    "SafetyHumanoidVelocity-v1",
    "SafetySwimmerVelocity-v1",
)
COMPARED = ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate")
